"""Expressions in Python: a typed tree becomes one function from a row to a value.

The reference engine runs these once per event, so the tree is walked once, here, and what remains are closures.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter, itemgetter
from typing import Any

from headrace.base.errors import DoesNotFit
from headrace.expr import casts
from headrace.expr.decimals import Unfit, widens
from headrace.expr.functions import FUNCTIONS
from headrace.expr.nodes import Call, Case, Cast, Expr, Literal, Ref
from headrace.expr.types import Columns, DecimalType

Evaluate = Callable[[Any], Any]
Read = Callable[[Ref], Evaluate]

_COMPARISONS = frozenset({"=", "<>", "<", "<=", ">", ">=", "between", "in", "distinct"})


def by_name(ref: Ref) -> Evaluate:
    """Rows are mappings; a named row is a mapping inside."""
    if ref.qualifier is None:
        return itemgetter(ref.name)
    row, name = ref.qualifier, ref.name
    return lambda rows: rows[row][name]


def by_attribute(ref: Ref) -> Evaluate:
    """Rows are objects; named rows are a mapping of objects."""
    get: Evaluate = attrgetter(ref.name)
    if ref.qualifier is None:
        return get
    row = ref.qualifier
    return lambda rows: get(rows[row])


def by_index(columns: Columns) -> Read:
    """Rows are sequences in the order of the columns; those of named rows are called `buy.country`."""
    places = {column.name: index for index, column in enumerate(columns)}
    return lambda ref: itemgetter(places[ref.path])


def compile(expr: Expr, read: Read = by_name) -> Evaluate:
    """The function from a row to the expression's value; it raises DoesNotFit where a result has no place in its type.

    >>> from headrace.expr import parse
    >>> from headrace.expr.types import INT, Column
    >>> double = compile(parse("n * 2", (Column("n", INT),)))
    >>> double({"n": 21})
    42
    """
    match expr:
        case Ref():
            return read(expr)
        case Literal():
            return _always(expr.value)
        case Cast():
            found = _cast(expr, read)
        case Case():
            found = _case(expr, read)
        case Call():
            found = _LAZY[expr.op](expr, read) if expr.op in _LAZY else _call(expr, read)
        case _:
            raise TypeError(f"{expr!r} is no expression")
    return found if expr.refs() else _folded(found)


def misfit(expr: Expr) -> str:
    """What is said of a row whose result does not fit; the same words on every engine."""
    return f"the result of {expr} does not fit {expr.type}"


def _always(value: object) -> Evaluate:
    return lambda row: value


def _folded(constant: Evaluate) -> Evaluate:
    """What reads no column is computed once; if it cannot be, the rows that reach it say so."""
    try:
        return _always(constant(None))
    except DoesNotFit:
        return constant


def _call(call: Call, read: Read) -> Evaluate:
    function = FUNCTIONS[call.op]
    assert function.python is not None
    args = [compile(_unwidened(arg) if call.op in _COMPARISONS else arg, read) for arg in call.args]
    if call.op == "in" and (options := _constants(call.args[1:])) is not None:
        return _in_set(args[0], options)
    operation = function.python(call)
    found = _spread(operation, args) if function.nulls == "own" else _strict(operation, args)
    return _guarded(call, found) if call.fails else found


def _strict(operation: Callable[..., Any], args: list[Evaluate]) -> Evaluate:
    """All arguments are evaluated, then one null makes the result null."""
    if len(args) == 1:
        (only,) = args
        return lambda row: None if (a := only(row)) is None else operation(a)
    if len(args) == 2:
        left, right = args

        def two(row: Any) -> Any:
            a, b = left(row), right(row)
            return None if a is None or b is None else operation(a, b)

        return two

    def several(row: Any) -> Any:
        values = [arg(row) for arg in args]
        return None if None in values else operation(*values)

    return several


def _spread(operation: Callable[..., Any], args: list[Evaluate]) -> Evaluate:
    return lambda row: operation(*[arg(row) for arg in args])


def _guarded(expr: Expr, evaluate: Evaluate) -> Evaluate:
    text = misfit(expr)

    def guarded(row: Any) -> Any:
        try:
            return evaluate(row)
        except Unfit:
            raise DoesNotFit(text, why="overflow is an error, never a wrap (rule B3)") from None

    return guarded


def _unwidened(arg: Expr) -> Expr:
    """Python compares decimals of any scale; a widening for the sake of comparison is time lost."""
    if isinstance(arg, Cast) and arg.implicit:
        source, target = arg.arg.type, arg.type
        if isinstance(source, DecimalType) and isinstance(target, DecimalType) and widens(source, target):
            return arg.arg
    return arg


def _constants(args: tuple[Expr, ...]) -> frozenset[object] | None:
    """The options of `in` where all are known, not null and fit; then a set can answer."""
    if any(arg.refs() for arg in args):
        return None
    try:
        values = [compile(arg)(None) for arg in args]
    except DoesNotFit:
        return None
    return None if None in values else frozenset(values)


def _in_set(value: Evaluate, options: frozenset[object]) -> Evaluate:
    return lambda row: None if (a := value(row)) is None else a in options


def _cast(cast: Cast, read: Read) -> Evaluate:
    convert = casts.conversion(cast.arg.type, cast.type)
    arg = compile(cast.arg, read)
    if cast.safe:
        return _null_if_unfit(arg, convert)
    found = _strict(convert, [arg])
    return _guarded(cast, found) if cast.fails else found


def _null_if_unfit(arg: Evaluate, convert: Callable[[Any], Any]) -> Evaluate:
    def safe(row: Any) -> Any:
        value = arg(row)  # outside the try: a misfit further inside is still an error
        try:
            return None if value is None else convert(value)
        except Unfit:
            return None

    return safe


def _case(case: Case, read: Read) -> Evaluate:
    branches = [(compile(when, read), compile(then, read)) for when, then in case.branches]
    otherwise = compile(case.otherwise, read)

    def choose(row: Any) -> Any:
        for when, then in branches:
            if when(row):
                return then(row)
        return otherwise(row)

    return choose


def _and(call: Call, read: Read) -> Evaluate:
    left, right = (compile(arg, read) for arg in call.args)

    def both(row: Any) -> Any:
        a = left(row)
        if a is False:
            return False
        b = right(row)
        return None if a is None and b is not False else b

    return both


def _or(call: Call, read: Read) -> Evaluate:
    left, right = (compile(arg, read) for arg in call.args)

    def either(row: Any) -> Any:
        a = left(row)
        if a is True:
            return True
        b = right(row)
        return None if a is None and b is not True else b

    return either


def _coalesce(call: Call, read: Read) -> Evaluate:
    options = [compile(arg, read) for arg in call.args]

    def first(row: Any) -> Any:
        for option in options:
            if (value := option(row)) is not None:
                return value
        return None

    return first


# What is not needed is not evaluated, and so cannot fail: `n <> 0 and cast(...) > 1` is safe to write.
_LAZY: dict[str, Callable[[Call, Read], Evaluate]] = {"and": _and, "or": _or, "coalesce": _coalesce}
