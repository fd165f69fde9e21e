"""What declared nodes have in common: where their rows come from, and which columns they have."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from headrace.expr.types import Column, Columns

if TYPE_CHECKING:
    from headrace.model.declared import Node


class OneInput:
    """Reads `of`."""

    __slots__ = ()

    of: Any

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.of,)


class Passing(OneInput):
    """Rows come out with the columns they came in with."""

    __slots__ = ()

    @property
    def columns(self) -> Columns:
        found: Columns = self.of.columns
        return found


class Narrowing(OneInput):
    """Rows that fulfil a condition: columns it could not be true without are no longer nullable."""

    __slots__ = ()

    condition: Any

    @property
    def columns(self) -> Columns:
        from headrace.expr.implied import never_null

        kept = never_null(self.condition)
        return tuple(replace(c, nullable=False) if c.name in kept else c for c in self.of.columns)


class Choosing:
    """The columns that come out are `values`, expressions with names."""

    __slots__ = ()

    values: Any

    @property
    def columns(self) -> Columns:
        return tuple(Column(name, value.type, value.nullable) for name, value in self.values)
