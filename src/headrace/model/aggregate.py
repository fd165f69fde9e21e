"""Aggregates: what a window says about its rows; each kind's argument and result types stand in one table."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from headrace.base.errors import BadAggregate, BadStep
from headrace.base.where import Where, here
from headrace.expr.types import FLOAT, INT, TEXT, TIME, Columns, DecimalType, ListType, Type, decimal, list_of
from headrace.model.declaring import declaring

DISTINCT_EXACT = 1_000
"""Distinct values are kept exactly up to this many per window, then by HyperLogLog (rule D5)."""
COLLECT_LIMIT = 1_000
UNRETRACTABLE = {
    "first": "the rows of a table have no order: a row that changes is neither the first nor the last",
    "last": "the rows of a table have no order: a row that changes is neither the first nor the last",
    "collect": "the rows of a table have no order in which they could be collected",
    "distinct_approx": "a sketch cannot give a value back; distinct counts exactly here",
    "stddev": "what a float added to a spread cannot be taken back exactly",
}
"""Kinds that cannot be kept over a changing table, and why."""


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate as written, not yet bound to columns: `hr.sum("amount")`."""

    kind: str
    argument: Any = None
    n: int = 0
    q: float = 0.0
    where: Where | None = None

    def __post_init__(self) -> None:
        if self.kind in ("top", "collect") and (not isinstance(self.n, int) or self.n < 1):
            raise BadAggregate(f"{self.kind} of {self.n!r} rows", why="it is a count, of at least 1",
                               fix='hr.top(3, "amount"), hr.collect("page", limit=100)', where=self.where)  # fmt: skip
        if self.kind == "quantile" and not (isinstance(self.q, int | float) and 0 <= self.q <= 1):
            raise BadAggregate(f"there is no quantile {self.q!r}", why="q lies between 0 and 1",
                               fix='hr.quantile("took_ms", 0.99)', where=self.where)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """An aggregate over known columns: its name in the result, its typed argument, its result type."""

    name: str
    kind: str
    argument: Any = None  # a typed expression of headrace.expr, None only for count()
    n: int = 0
    q: float = 0.0
    type: Type
    nullable: bool = False

    def __str__(self) -> str:
        if self.kind == "top_rows":
            return f"top {self.n} by {self.argument}"
        inside = [str(self.argument)] if self.argument is not None else []
        inside += [str(self.n)] if self.n else []
        inside += [f"{self.q:g}"] if self.kind == "quantile" else []
        return f"{self.name} = {self.kind}({', '.join(inside)})"


@declaring('hr.count() or hr.count("note")')
def count(argument: Any = None) -> Aggregate:
    """How many rows; with an argument, how many where it is not null."""
    return Aggregate("count", argument, where=here())


@declaring('hr.sum("amount")')
def sum(argument: Any) -> Aggregate:
    """The sum of an int, float or money expression, nulls left out; exact for money."""
    return Aggregate("sum", argument, where=here())


@declaring('hr.avg("amount")')
def avg(argument: Any) -> Aggregate:
    """The mean, nulls left out; money keeps six digits, rounded half up."""
    return Aggregate("avg", argument, where=here())


@declaring('hr.stddev("amount")')
def stddev(argument: Any) -> Aggregate:
    """The standard deviation of a sample, a float, nulls left out; null for fewer than two values. Exact up to the last
    root for ints and money."""
    return Aggregate("stddev", argument, where=here())


@declaring('hr.min("amount")')
def min(argument: Any) -> Aggregate:
    """The least value, nulls left out; text by code point."""
    return Aggregate("min", argument, where=here())


@declaring('hr.max("amount")')
def max(argument: Any) -> Aggregate:
    """The greatest value, nulls left out; text by code point."""
    return Aggregate("max", argument, where=here())


@declaring('hr.first("country")')
def first(argument: Any) -> Aggregate:
    """The value of the earliest row by (event time, topic, partition, offset), rule R2."""
    return Aggregate("first", argument, where=here())


@declaring('hr.last("country")')
def last(argument: Any) -> Aggregate:
    """The value of the latest row by (event time, topic, partition, offset), rule R2."""
    return Aggregate("last", argument, where=here())


@declaring('hr.distinct("terminal_id")')
def distinct(argument: Any, *, approx: bool = False) -> Aggregate:
    """How many different values: exact up to 1,000 a window, then within about 2 %; `approx=True`: always a sketch."""
    return Aggregate("distinct_approx" if approx else "distinct", argument, where=here())


@declaring('hr.quantile("took_ms", 0.99)')
def quantile(argument: Any, q: float) -> Aggregate:
    """The q-quantile within 1 % of the value (DDSketch)."""
    return Aggregate("quantile", argument, q=q, where=here())


@declaring('hr.top(3, "amount")')
def top(n: int, argument: Any) -> Aggregate:
    """The n greatest values, greatest first."""
    return Aggregate("top", argument, n=n, where=here())


@declaring('hr.collect("page", limit=100)')
def collect(argument: Any, *, limit: int = COLLECT_LIMIT) -> Aggregate:
    """The values in order (rule R2), at most `limit`: the first ones are kept."""
    return Aggregate("collect", argument, n=limit, where=here())


def bind_all(
    values: dict[str, Aggregate], columns: Columns, taken: Collection[str], where: Where | None
) -> tuple[Bound, ...]:
    """The values of an `agg(...)`, each under its name; `taken`: names that results have already."""
    for name, value in values.items():
        if not name.isidentifier():
            raise BadStep(f"{name!r} cannot name a column", fix="use letters, digits and _", where=where)
        if name in taken:
            raise BadStep(f"{name!r} is taken", why="results have it as a key or window column", where=where)
        if not isinstance(value, Aggregate):
            raise BadStep(f"{name} is no aggregate", fix=f'write {name}=hr.sum("...") or hr.count()', where=where)
    if not values:
        raise BadStep("agg() of nothing", fix="say what to compute: agg(times=hr.count())", where=where)
    return tuple(bind(name, value, columns, where) for name, value in values.items())


def bind(name: str, aggregate: Aggregate, columns: Columns, where: Where | None) -> Bound:
    """Types an aggregate against a stream's columns; refuses what makes no sense, at the user's line."""
    from headrace.expr import expression

    place = aggregate.where or where
    argument = None if aggregate.argument is None else expression(aggregate.argument, columns, where=place)
    result = INT if argument is None else result_of(aggregate.kind, argument.type)
    if result is None:
        raise BadAggregate(
            f"{aggregate.kind} of {argument} makes no sense",
            why=f"{argument} is {argument.type if argument else ''}; {aggregate.kind} takes {_TAKES[aggregate.kind]}",
            fix="choose another column, or cast it",
            where=place,
        )
    return Bound(
        name=name,
        kind=aggregate.kind,
        argument=argument,
        n=aggregate.n,
        q=aggregate.q,
        type=result,
        nullable=aggregate.kind in NULL_WHEN_FEW
        or (aggregate.kind in NULL_WHEN_EMPTY and (argument is None or argument.nullable)),
    )


def result_of(kind: str, of: Type) -> Type | None:
    """The type of an aggregate over values of a type; None: it makes no sense."""
    return _RESULT[kind](of)


def _sum(of: Type) -> Type | None:
    if isinstance(of, DecimalType):
        return decimal(38 if of.precision > 28 else of.precision + 10, of.scale)
    return of if of in (INT, FLOAT) else None


def _avg(of: Type) -> Type | None:
    if isinstance(of, DecimalType):
        return decimal(builtins.min(38, of.precision + 4), of.scale + 4)
    return FLOAT if of in (INT, FLOAT) else None


def _ordered(of: Type) -> Type | None:
    return of if isinstance(of, DecimalType) or of in (INT, FLOAT, TEXT, TIME) else None


def _countable(of: Type) -> Type | None:
    return None if isinstance(of, ListType) else INT


def _number(of: Type) -> Type | None:
    return FLOAT if isinstance(of, DecimalType) or of in (INT, FLOAT) else None


_RESULT: dict[str, Callable[[Type], Type | None]] = {
    "count": lambda _: INT,
    "sum": _sum,
    "avg": _avg,
    "stddev": _number,
    "min": _ordered,
    "max": _ordered,
    "first": lambda of: of,
    "last": lambda of: of,
    "distinct": _countable,
    "distinct_approx": _countable,
    "quantile": _number,
    "top": lambda of: list_of(of) if _ordered(of) else None,
    "collect": list_of,
}
_TAKES = {
    "sum": "int, float or money",
    "avg": "int, float or money",
    "stddev": "int, float or money",
    "min": "int, float, money, text or time",
    "max": "int, float, money, text or time",
    "distinct": "single values, not lists",
    "distinct_approx": "single values, not lists",
    "quantile": "int, float or money",
    "top": "int, float, money, text or time",
}
NULL_WHEN_EMPTY = ("sum", "avg", "min", "max", "first", "last", "quantile")
NULL_WHEN_FEW = ("stddev",)
"""Of one value, too."""
