"""The type checker: an untyped tree and the columns it may read become a typed tree, or an error with a caret."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal

from headrace.base.clock import utc
from headrace.base.duration import duration
from headrace.base.errors import BadDuration, BadTime, ExpressionError, ExpressionRefused, ExpressionType, UnknownColumn
from headrace.base.where import Where
from headrace.expr import rules
from headrace.expr.casts import INT_MAX, INT_MIN, castable, conversion
from headrace.expr.decimals import MAX_PRECISION, Unfit, of_constant
from headrace.expr.functions import FUNCTIONS, UNSTABLE, UNSTABLE_FIX, UNSTABLE_WHY
from headrace.expr.nodes import Call, Case, Cast, Expr, Literal, Ref
from headrace.expr.show import show_term
from headrace.expr.syntax import Apply, CastTo, Choose, Constant, Name, Span, Term, Value
from headrace.expr.types import BOOL, DURATION, FLOAT, INT, NULL, TEXT, TIME, Columns, Type, decimal, same

# `at > '2026-11-03T15:00:00Z'` means a time; everywhere else text stays text.
_READS_TIMES = frozenset({"=", "<>", "<", "<=", ">", ">=", "between", "in", "distinct", "seconds_between"})
_LONGEST = timedelta(days=3_660_000)  # more than all the time there is between the years 1 and 9999


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where an expression comes from: its text, and the user's line; makes the errors."""

    text: str
    where: Where | None = None

    def error(
        self, kind: type[ExpressionError], what: str, at: Span | None = None, *, why: str = "", fix: str = ""
    ) -> ExpressionError:
        return kind(what, text=self.text, span=at, why=why, fix=fix, where=self.where)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checker:
    """Types terms against the columns of the row and of the rows that have names."""

    source: Source
    columns: Columns
    names: Mapping[str, Columns] = field(default_factory=dict)

    def check(self, term: Term) -> Expr:
        """A typed tree with a type that a column can have."""
        found = self._visit(term)
        if found.type in (NULL, DURATION):
            raise self.source.error(
                ExpressionType,
                f"{show_term(term)} is {found.type}, which no column can hold",
                term.at,
                fix="give it a type: cast(null as int)" if found.type == NULL else "use seconds_between(a, b)",
            )
        return found

    def _visit(self, term: Term) -> Expr:
        match term:
            case Name():
                return self._column(term)
            case Value():
                return self._literal(term.value, term.at)
            case CastTo():
                return self._cast(term)
            case Choose():
                return self._case(term)
            case Apply():
                return self._call(term)
            case _:
                raise TypeError(f"{term!r} is no term")

    def columns_of(self, row: str | None, term: Term) -> Columns:
        """The columns of a named row, or with None of the row that needs no name."""
        if row is None:
            return self.columns
        if row in self.names:
            return self.names[row]
        alone = f"write {term.name if isinstance(term, Name) else '*'} alone"
        raise self.source.error(
            UnknownColumn,
            f"there is no row named {row!r} here",
            term.at,
            why=f"the named rows are {', '.join(self.names)}" if self.names else "no rows have names here",
            fix=closest(row, self.names) or (f"it is one of {', '.join(self.names)}" if self.names else alone),
        )

    def _column(self, term: Name) -> Expr:
        columns = self.columns_of(term.qualifier, term)
        for column in columns:
            if column.name == term.name:
                return Ref(name=term.name, qualifier=term.qualifier, type=column.type, nullable=column.nullable)
        raise self._unknown(term, columns)

    def _unknown(self, term: Name, columns: Columns) -> ExpressionError:
        if term.qualifier is None and term.name.lower() in UNSTABLE:
            what = f"{term.name.lower()} is not allowed in an expression"
            return self.source.error(ExpressionRefused, what, term.at, why=UNSTABLE_WHY, fix=UNSTABLE_FIX)
        elsewhere = [name for name, found in self.names.items() if term.name in {column.name for column in found}]
        known = [column.name for column in columns]
        return self.source.error(
            UnknownColumn,
            f"there is no column {term.name!r}",
            term.at,
            why=f"the columns are {', '.join(known)}" if known else "no column can be read without the name of its row",
            fix=f"write {elsewhere[0]}.{term.name}"
            if elsewhere and term.qualifier is None
            else closest(term.name, known),
        )

    def _literal(self, value: Constant, at: Span | None) -> Literal:
        try:
            return literal(value)
        except (ValueError, BadTime, BadDuration) as problem:
            raise self.source.error(ExpressionType, "this constant cannot be used", at, why=str(problem)) from None

    def _cast(self, term: CastTo) -> Expr:
        arg = self._visit(term.arg)
        if arg.type == TEXT and term.type == TIME and not term.safe and isinstance(arg, Literal):
            return self._time(arg, term.arg.at)
        if not castable(arg.type, term.type):
            raise self.source.error(
                ExpressionType,
                f"{arg.type} cannot become {term.type}",
                term.arg.at or term.at,
                why=_NO_CAST.get((arg.type, term.type), "there is no one meaning of it that every engine shares"),
            )
        return Cast(arg=arg, type=term.type, safe=term.safe)

    def _case(self, term: Choose) -> Expr:
        conditions = [self._convert(self._visit(when), BOOL, when) for when, _ in term.branches]
        parts = [then for _, then in term.branches] + ([] if term.otherwise is None else [term.otherwise])
        results = [self._visit(part) for part in parts]
        try:
            shared = rules.common(results)
        except rules.Mismatch as mismatch:
            blamed = term if mismatch.index is None else parts[mismatch.index]
            raise self.source.error(
                ExpressionType, "the results of a case differ in type", blamed.at, why=mismatch.why, fix=mismatch.fix
            ) from None
        fitted = [self._convert(result, shared, term) for result in results]
        absent = Cast(arg=literal(None), type=shared, implicit=True)
        branches = tuple(zip(conditions, fitted, strict=False))
        return Case(branches=branches, otherwise=absent if term.otherwise is None else fitted[-1])

    def _call(self, term: Apply) -> Expr:
        args = [self._visit(arg) for arg in term.args]
        if term.op in _READS_TIMES and any(arg.type == TIME for arg in args):
            args = [
                self._time(arg, part.at) if isinstance(arg, Literal) and arg.type == TEXT else arg
                for arg, part in zip(args, term.args, strict=True)
            ]
        try:
            taken, _ = FUNCTIONS[term.op].rule(args)
        except rules.Mismatch as mismatch:
            blamed = term if mismatch.index is None else term.args[mismatch.index]
            raise self.source.error(
                ExpressionType,
                f"{show_term(term)} cannot be computed",
                blamed.at or term.at,
                why=mismatch.why,
                fix=mismatch.fix or f"it is used as {FUNCTIONS[term.op].usage}",
            ) from None
        return Call(op=term.op, args=tuple(self._convert(*each) for each in zip(args, taken, term.args, strict=True)))

    def _convert(self, arg: Expr, want: Type, term: Term) -> Expr:
        """The argument as the wanted type, by a conversion that happens by itself."""
        if same(arg.type, want):
            return arg
        if want == BOOL and arg.type != NULL:
            raise self.source.error(
                ExpressionType, f"a condition is true or false, and {show_term(term)} is {arg.type}", term.at
            )
        return Cast(arg=arg, type=want, implicit=True)

    def _time(self, arg: Literal, at: Span | None) -> Literal:
        try:
            found = conversion(TEXT, TIME)(arg.value)
        except Unfit:
            raise self.source.error(
                ExpressionType,
                f"{arg.value!r} is not a time",
                at,
                why="a time in an expression is an instant in RFC 3339, with its zone",
                fix="write it like '2026-11-03T15:00:00Z'",
            ) from None
        assert isinstance(found, datetime)
        return literal(found)


def literal(value: Constant) -> Literal:
    """A constant with the narrowest type that holds it; ValueError says why there is none."""
    match value:
        case None:
            return Literal(value=None, type=NULL)
        case bool():
            return Literal(value=value, type=BOOL)
        case int():
            return Literal(value=value, type=INT) if INT_MIN <= value <= INT_MAX else literal(Decimal(value))
        case float():
            if not math.isfinite(value):
                raise ValueError("floats are finite here: NaN and infinity are dead letters (rule B3)")
            return Literal(value=value + 0.0, type=FLOAT)  # -0.0 equals 0.0, so a tree may hold only one of them
        case Decimal():
            return _decimal_literal(value)
        case str():
            return Literal(value=value, type=TEXT)
        case datetime():
            return Literal(value=utc(value), type=TIME)
        case timedelta():
            if abs(value) > _LONGEST:
                raise ValueError("an interval is at most ten thousand years")
            return Literal(value=duration(value), type=DURATION)
        case _:
            raise ValueError(f"a constant is a number, text, time or truth value, not {type(value).__name__}")


def _decimal_literal(value: Decimal) -> Literal:
    if not value.is_finite():
        raise ValueError("NaN and infinity are no amounts")
    exponent = value.as_tuple().exponent
    plain = value if isinstance(exponent, int) and exponent <= 0 else Decimal(f"{value:f}")
    found = of_constant(plain)
    if found.precision > MAX_PRECISION:
        raise ValueError(f"decimals have at most {MAX_PRECISION} digits")
    return Literal(value=plain or plain.copy_abs(), type=decimal(found.precision, found.scale))


def closest(name: str, known: Iterable[str]) -> str:
    folded = {other.lower(): other for other in known}
    found = difflib.get_close_matches(name.lower(), folded, n=1, cutoff=0.6)
    return f"did you mean {folded[found[0]]}?" if found else ""


_NO_CAST = {
    (FLOAT, TEXT): "engines print floats differently; cast it to a decimal first",
    (INT, BOOL): "say what counts as true, for example x <> 0",
    (INT, TIME): "an int does not say its unit; use timestamp_millis(x)",
    (TIME, INT): "an int does not say its unit; use unix_millis(t)",
}
