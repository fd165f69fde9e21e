"""Expressions before their types are known: what the parser reads, what `hr.col` builds, what the printer prints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from functools import reduce
from typing import NamedTuple

from headrace.expr.types import Type

Constant = bool | int | float | Decimal | str | datetime | timedelta | None


class Span(NamedTuple):
    """Where a word stands in the text, end exclusive."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """Any untyped expression; `at` is for the caret and takes no part in equality."""

    at: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Name(Term):
    """A column, perhaps of a named row: `country`, `buy.country`."""

    name: str
    qualifier: str | None = None


@dataclass(frozen=True, slots=True)
class Value(Term):
    """A constant."""

    value: Constant


@dataclass(frozen=True, slots=True)
class Apply(Term):
    """An operator or function with its arguments, under its one name in the table of functions."""

    op: str
    args: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class CastTo(Term):
    """`cast(x as type)`; `safe` is try_cast: null instead of an error."""

    arg: Term
    type: Type
    safe: bool = False


@dataclass(frozen=True, slots=True)
class Choose(Term):
    """`case when ... then ... else ... end`: the first branch whose condition is true."""

    branches: tuple[tuple[Term, Term], ...]
    otherwise: Term | None = None


@dataclass(frozen=True, slots=True)
class Star(Term):
    """`*` in a select list: every column there is; `buy.*`: every column of that row."""

    row: str | None = None


def negate(term: Term, at: Span | None = None) -> Term:
    """`-5` is a constant, `-x` an operation: one tree for each, so that printing and parsing meet."""
    value = term.value if isinstance(term, Value) else None
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or value <= 0:
        return Apply("negate", (term,), at=at)
    return Value(value.copy_negate() if isinstance(value, Decimal) else -value, at=at or term.at)


def walk(term: Term) -> Iterator[Term]:
    """The term and everything inside it."""
    yield term
    match term:
        case Apply():
            inside = term.args
        case CastTo():
            inside = (term.arg,)
        case Choose():
            chosen = tuple(part for branch in term.branches for part in branch)
            inside = chosen if term.otherwise is None else (*chosen, term.otherwise)
        case _:
            inside = ()
    for part in inside:
        yield from walk(part)


def rebuilt(term: Term, change: Callable[[Term], Term]) -> Term:
    """The same term with each of its parts changed."""
    match term:
        case Apply():
            return replace(term, args=tuple(map(change, term.args)))
        case CastTo():
            return replace(term, arg=change(term.arg))
        case Choose():
            branches = tuple((change(when), change(then)) for when, then in term.branches)
            return replace(
                term, branches=branches, otherwise=None if term.otherwise is None else change(term.otherwise)
            )
    return term


def conjuncts(term: Term) -> Iterator[Term]:
    """The conditions that `and` joins: all of them must be true."""
    if isinstance(term, Apply) and term.op == "and":
        for arg in term.args:
            yield from conjuncts(arg)
    else:
        yield term


def conjunction(terms: Sequence[Term]) -> Term:
    """Conditions joined with `and`."""
    return reduce(lambda one, other: Apply("and", (one, other)), terms)
