"""Expressions before their types are known: what the parser reads, what `hr.col` builds, what the printer prints."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
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
    """`*` in a select list: every column there is."""


def negate(term: Term, at: Span | None = None) -> Term:
    """`-5` is a constant, `-x` an operation: one tree for each, so that printing and parsing meet."""
    value = term.value if isinstance(term, Value) else None
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or value <= 0:
        return Apply("negate", (term,), at=at)
    return Value(value.copy_negate() if isinstance(value, Decimal) else -value, at=at or term.at)
