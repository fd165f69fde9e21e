"""Declared features: windows that look back from each row, what is told of the rows before, what is kept for both."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from headrace.base.where import Where
from headrace.expr.types import TEXT, Column, Columns, list_of
from headrace.model.aggregate import Bound
from headrace.model.naming import refs
from headrace.model.tiles import NEED_ROWS, width_of

if TYPE_CHECKING:
    from headrace.model.declared import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Over:
    """Aggregates over (t - delay - size, t - delay], t being the time of the row that is told of. `input`: whose rows,
    0 those of the source, from 1 on those of another stream. `tile`: the width of the tiles that the window is kept in,
    0: it is exact (rule FE12)."""

    size: timedelta
    delay: timedelta
    values: tuple[Bound, ...]
    input: int = 0
    tile: timedelta = timedelta(0)

    def __post_init__(self) -> None:
        if self.tile:
            assert self.tile == width_of(self.size), "a window has tiles of its own width"
            assert not self.delay, "a delayed window would need the rows of its last tile"
            assert not any(value.kind in NEED_ROWS for value in self.values), "tiles keep no rows"

    @property
    def reach(self) -> timedelta:
        return self.size + self.delay


@dataclass(frozen=True, slots=True, kw_only=True)
class Other:
    """Another stream, whose rows are remembered under the same key and never told. `keys`: as its rows have it."""

    of: Node
    keys: tuple[tuple[str, Any], ...]
    name: str


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
class Featured:
    """A stream's rows, each with what is known of its key at its time (docs/features.md). `once`: an id that a key is
    told of once. `seen`: which rows a vector was told of is a column, too."""

    of: Node
    keys: tuple[tuple[str, Any], ...]
    others: tuple[Other, ...]
    overs: tuple[Over, ...]
    before: tuple[Before, ...]
    once: Any  # an expression over the row, or None
    seen: bool
    ttl: timedelta
    lateness: timedelta
    most: int
    name: str
    where: Where | None = None

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.of, *(other.of for other in self.others))

    @property
    def columns(self) -> Columns:
        return (*self.of.columns, *self.features)

    @property
    def features(self) -> Columns:
        windows = [Column(v.name, v.type, v.nullable) for over in self.overs for v in over.values]
        seen = [seen_by(self.name)] if self.seen else []
        return (*windows, *(one.told for one in self.before), *seen)

    @property
    def reach(self) -> timedelta:
        """How far back the windows look."""
        return max((over.reach for over in self.overs), default=timedelta(0))

    def key_of(self, number: int) -> tuple[tuple[str, Any], ...]:
        """The key, as rows of the n-th input have it."""
        return self.keys if number == 0 else self.others[number - 1].keys

    def asked(self, number: int) -> tuple[Any, ...]:
        """What is kept of each row of the n-th input beside its time: expressions over its columns, each once."""
        overs = [over for over in self.overs if over.input == number]
        arguments = [v.argument for over in overs for v in over.values if v.argument is not None]
        before = [ref for _, ref in self.before_refs] if number == 0 else []
        return tuple(dict.fromkeys([*arguments, *before]))

    @property
    def before_refs(self) -> tuple[tuple[str, Any], ...]:
        """The columns that are told of the rows before, by name."""
        return refs(tuple(one.column.name for one in self.before), self.of.columns)

    def shown(self, number: int) -> tuple[Any, ...]:
        """What the step is shown of a row: what it keeps and, last, the id that it knows a row of the source by."""
        return (*self.asked(number), self.once) if number == 0 and self.once is not None else self.asked(number)

    def computed(self, number: int) -> tuple[Any, ...]:
        """Those of them that are no columns of the row."""
        from headrace.expr.nodes import Ref

        return tuple(dict.fromkeys(one for one in self.shown(number) if not isinstance(one, Ref)))

    def layout(self, number: int) -> Columns:
        """A row of the n-th input as a kernel sees it: its columns, then what is computed of them."""
        computed = (Column(f"({n})", one.type, one.nullable) for n, one in enumerate(self.computed(number)))
        return (*self.inputs[number].columns, *computed)

    def kept(self, number: int) -> tuple[int, ...]:
        """Where in the layout each of those shown stands."""
        names = [column.name for column in self.inputs[number].columns]
        computed = self.computed(number)
        return tuple(
            len(names) + computed.index(one) if one in computed else names.index(one.name) for one in self.shown(number)
        )


def seen_by(name: str) -> Column:
    """The column that says which rows a vector of these features was told of."""
    return Column(f"seen_{name.replace('-', '_')}", TEXT)
