"""`hr.col.amount > 100`: Python operators that build the same trees as SQL text."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, NoReturn

from headrace.base.errors import ExpressionRefused
from headrace.base.where import here
from headrace.expr.functions import FUNCTIONS
from headrace.expr.syntax import Apply, CastTo, Choose, Constant, Name, Term, Value, negate
from headrace.expr.types import BOOL, FLOAT, INT, MONEY, TEXT, TIME, Type

Operand = Any  # a Col or a constant; Python's operators hand over whatever stands beside them
_TYPES = {"bool": BOOL, "int": INT, "float": FLOAT, "text": TEXT, "time": TIME, "money": MONEY}


class Col:
    """An expression in the making; every operator gives a new one."""

    __slots__ = ("term",)
    __hash__ = None  # type: ignore[assignment]  # == builds an expression, so a Col cannot be looked up

    def __init__(self, term: Term) -> None:
        self.term = term

    def __repr__(self) -> str:
        from headrace.expr.show import show_term  # imported late: the printer is needed only for people

        return f"<col {show_term(self.term)}>"

    def __getattr__(self, name: str) -> Col:
        """`col.buy.country`: a column of a named row."""
        if name.startswith("_") or not isinstance(self.term, Name) or self.term.qualifier is not None:
            raise AttributeError(f"an expression has no method {name!r}")
        return Col(Name(name, self.term.name))

    def __bool__(self) -> NoReturn:
        raise ExpressionRefused(
            "an expression has no truth value while it is declared",
            why="`and`, `or`, `not`, `in` and chained comparisons ask Python, not the stream",
            fix="use &, |, ~, .in_(...) and .between(...), with parentheses",
            where=here(),
        )

    # -- comparison and logic

    def __eq__(self, other: Operand) -> Col:  # type: ignore[override]
        return _apply("=", self, other)

    def __ne__(self, other: Operand) -> Col:  # type: ignore[override]
        return _apply("<>", self, other)

    def __lt__(self, other: Operand) -> Col:
        return _apply("<", self, other)

    def __le__(self, other: Operand) -> Col:
        return _apply("<=", self, other)

    def __gt__(self, other: Operand) -> Col:
        return _apply(">", self, other)

    def __ge__(self, other: Operand) -> Col:
        return _apply(">=", self, other)

    def __and__(self, other: Operand) -> Col:
        return _apply("and", self, other)

    def __rand__(self, other: Operand) -> Col:
        return _apply("and", other, self)

    def __or__(self, other: Operand) -> Col:
        return _apply("or", self, other)

    def __ror__(self, other: Operand) -> Col:
        return _apply("or", other, self)

    def __invert__(self) -> Col:
        return _apply("not", self)

    def is_null(self) -> Col:
        return _apply("is_null", self)

    def is_not_null(self) -> Col:
        return ~self.is_null()

    def is_distinct_from(self, other: Operand) -> Col:
        return _apply("distinct", self, other)

    def in_(self, *options: Operand) -> Col:
        if not options:
            raise ExpressionRefused("in_() needs a value to compare with", where=here())
        return _apply("in", self, *options)

    def between(self, low: Operand, high: Operand) -> Col:
        return _apply("between", self, low, high)

    def like(self, pattern: str) -> Col:
        return _apply("like", self, pattern)

    # -- arithmetic

    def __add__(self, other: Operand) -> Col:
        return _apply("+", self, other)

    def __radd__(self, other: Operand) -> Col:
        return _apply("+", other, self)

    def __sub__(self, other: Operand) -> Col:
        return _apply("-", self, other)

    def __rsub__(self, other: Operand) -> Col:
        return _apply("-", other, self)

    def __mul__(self, other: Operand) -> Col:
        return _apply("*", self, other)

    def __rmul__(self, other: Operand) -> Col:
        return _apply("*", other, self)

    def __truediv__(self, other: Operand) -> Col:
        return _apply("/", self, other)

    def __rtruediv__(self, other: Operand) -> Col:
        return _apply("/", other, self)

    def __mod__(self, other: Operand) -> Col:
        return _apply("%", self, other)

    def __rmod__(self, other: Operand) -> Col:
        return _apply("%", other, self)

    def __neg__(self) -> Col:
        return Col(negate(self.term))

    def __abs__(self) -> Col:
        return _apply("abs", self)

    def __round__(self, digits: int = 0) -> Col:
        return _apply("round", self, digits)

    # -- text, time, types

    def concat(self, other: Operand) -> Col:
        return _apply("||", self, other)

    def lower(self) -> Col:
        return _apply("lower", self)

    def upper(self) -> Col:
        return _apply("upper", self)

    def trim(self) -> Col:
        return _apply("trim", self)

    def length(self) -> Col:
        return _apply("length", self)

    def crc32(self) -> Col:
        return _apply("crc32", self)

    def substr(self, start: Operand, count: Operand) -> Col:
        return _apply("substr", self, start, count)

    def replace(self, old: Operand, new: Operand) -> Col:
        return _apply("replace", self, old, new)

    def starts_with(self, text: Operand) -> Col:
        return _apply("starts_with", self, text)

    def ends_with(self, text: Operand) -> Col:
        return _apply("ends_with", self, text)

    def contains(self, text: Operand) -> Col:
        return _apply("contains", self, text)

    def extract(self, unit: str) -> Col:
        return _apply("extract", unit, self)

    def date_trunc(self, unit: str) -> Col:
        return _apply("date_trunc", unit, self)

    def cast(self, type: str | Type) -> Col:
        """`col.n.cast("float")`, `col.n.cast(decimal(10, 2))`."""
        return Col(CastTo(self.term, _type(type)))

    def try_cast(self, type: str | Type) -> Col:
        return Col(CastTo(self.term, _type(type), safe=True))


class Row:
    """`hr.col`: its attributes are columns; `hr.col["odd name"]` where Python cannot spell one."""

    def __getattr__(self, name: str) -> Col:
        if name.startswith("__"):
            raise AttributeError(name)
        return Col(Name(name))

    def __getitem__(self, name: str) -> Col:
        return Col(Name(name))


col = Row()


def call(function: str, *args: Operand) -> Col:
    """Any function of the table by its name: `call("greatest", col.a, col.b)`."""
    if function not in FUNCTIONS:
        raise ExpressionRefused(
            f"{function} is not allowed in an expression",
            why="an expression may use only the functions of the table in docs/expressions.md",
            where=here(),
        )
    return _apply(function, *args)


def when(condition: Col, then: Operand, otherwise: Operand = None) -> Col:
    """`case when condition then ... else ... end`."""
    branch = (condition.term, _term(then))
    return Col(Choose((branch,), None if otherwise is None else _term(otherwise)))


def _apply(op: str, *args: Operand) -> Col:
    return Col(Apply(op, tuple(_term(arg) for arg in args)))


def _term(given: Operand) -> Term:
    return given.term if isinstance(given, Col) else Value(_constant(given))


def _constant(given: object) -> Constant:
    if given is None or isinstance(given, bool | int | Decimal | str | datetime | timedelta):
        return given
    if isinstance(given, float):
        return _as_typed(given)
    raise ExpressionRefused(
        f"{given!r} cannot stand in an expression",
        why="constants are numbers, text, times, durations and truth values",
        where=here(),
    )


def _as_typed(given: float) -> Constant:
    """0.1 in Python means what 0.1 means in SQL, a decimal; beside a float column it becomes that float again."""
    text = repr(given)
    return Decimal(text) if "e" not in text and text[-1].isdigit() else given


def _type(type: str | Type) -> Type:
    if isinstance(type, Type):
        return type
    if type in _TYPES:
        return _TYPES[type]
    raise ExpressionRefused(f"there is no type {type!r}", why=f"the types are {', '.join(_TYPES)}", where=here())
