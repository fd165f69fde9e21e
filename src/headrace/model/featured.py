"""Declared features: windows that look back from each row, what is told of the rows before, what is kept for both."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from headrace.base.where import Where
from headrace.expr.types import Column, Columns, list_of
from headrace.model.aggregate import Bound
from headrace.model.naming import refs
from headrace.model.node import OneInput

if TYPE_CHECKING:
    from headrace.model.declared import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Over:
    """Aggregates over (t - delay - size, t - delay], t being the time of the row that is told of."""

    size: timedelta
    delay: timedelta
    values: tuple[Bound, ...]

    @property
    def reach(self) -> timedelta:
        return self.size + self.delay


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """A column of the n rows before: its value if n is 1, else a list, the latest first."""

    column: Column
    n: int

    @property
    def told(self) -> Column:
        name = f"last_{self.column.name}"
        if self.n == 1:
            return Column(name, self.column.type, True)
        return Column(name, list_of(self.column.type))


@dataclass(frozen=True, slots=True, kw_only=True)
class Featured(OneInput):
    """A stream's rows, each with what is known of its key at its time (docs/features.md)."""

    of: Node
    keys: tuple[tuple[str, Any], ...]
    overs: tuple[Over, ...]
    before: tuple[Before, ...]
    ttl: timedelta
    lateness: timedelta
    most: int
    name: str
    where: Where | None = None

    @property
    def columns(self) -> Columns:
        return (*self.of.columns, *self.features)

    @property
    def features(self) -> Columns:
        windows = [Column(v.name, v.type, v.nullable) for over in self.overs for v in over.values]
        return (*windows, *(one.told for one in self.before))

    @property
    def reach(self) -> timedelta:
        """How far back the windows look."""
        return max((over.reach for over in self.overs), default=timedelta(0))

    @property
    def asked(self) -> tuple[Any, ...]:
        """What is kept of each row beside its time: expressions over its columns, each once."""
        arguments = [v.argument for over in self.overs for v in over.values if v.argument is not None]
        return tuple(dict.fromkeys([*arguments, *(ref for _, ref in self.before_refs)]))

    @property
    def before_refs(self) -> tuple[tuple[str, Any], ...]:
        """The columns that are told of the rows before, by name."""
        return refs(tuple(one.column.name for one in self.before), self.of.columns)

    @property
    def computed(self) -> tuple[Any, ...]:
        """Those of them that are no columns of the row."""
        from headrace.expr.nodes import Ref

        return tuple(one for one in self.asked if not isinstance(one, Ref))

    @property
    def layout(self) -> Columns:
        """A row as a kernel sees it: its columns, then what is computed of them."""
        computed = (Column(f"({n})", one.type, one.nullable) for n, one in enumerate(self.computed))
        return (*self.of.columns, *computed)

    @property
    def kept(self) -> tuple[int, ...]:
        """Where in the layout each of those asked for stands."""
        names = [column.name for column in self.of.columns]
        computed = self.computed
        return tuple(
            len(names) + computed.index(one) if one in computed else names.index(one.name) for one in self.asked
        )
