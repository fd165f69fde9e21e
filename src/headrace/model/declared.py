"""What was declared, as a tree: one frozen node a verb, typed when it is made, each remembering the user's line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from headrace.base.where import Where
from headrace.expr.types import INT, TEXT, TIME, Column, Columns
from headrace.model.aggregate import Bound
from headrace.model.changing import ChangeRows, Changing
from headrace.model.decided import Decided as Decided
from headrace.model.event import EventType
from headrace.model.featured import Featured as Featured
from headrace.model.matched import Pattern as Pattern
from headrace.model.node import Choosing, Narrowing, OneInput, Passing
from headrace.model.window import Emit, Forever, Window

RANK = Column("rank", INT)
KIND = Column("kind", TEXT)
"""Of a window's result: early, final, correction, retraction (rule W5)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A topic of events: where rows enter. `disorder` None means marked: only marks move its frontier (rule T7)."""

    event: EventType
    disorder: timedelta | None
    idle: timedelta | None
    skew: timedelta
    name: str
    where: Where | None = None

    @property
    def inputs(self) -> tuple[Node, ...]:
        return ()

    @property
    def columns(self) -> Columns:
        return self.event.columns


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTable:
    """A topic of versions: the rows of a table as they change, a tombstone for each that goes (rules J4 to J6).
    `history`: how far back versions are kept for enriching as of a time; None: only the current one is asked for.
    `ttl`: how long a row lives that no version renews (rule J7); None: until it is deleted.
    `changes`: its records say what was before and after, and when (rule F2), instead of the row as it is."""

    event: EventType
    disorder: timedelta
    idle: timedelta | None
    skew: timedelta
    history: timedelta | None
    ttl: timedelta | None
    changes: bool
    name: str
    where: Where | None = None

    @property
    def inputs(self) -> tuple[Node, ...]:
        return ()

    @property
    def columns(self) -> Columns:
        return self.event.columns


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter(Narrowing):
    """Rows for which the condition is true; false and null are filtered. Columns it could not be true without are no
    longer nullable."""

    of: Node
    condition: Any
    name: str = ""
    where: Where | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Project(OneInput, Choosing):
    """New columns from expressions."""

    of: Node
    values: tuple[tuple[str, Any], ...]
    name: str = ""
    where: Where | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MapRows(OneInput):
    """A Python function from a row to a row (`many`: to any number of rows), with a declared result type."""

    of: Node
    function: Callable[[Any], Any]
    result: EventType
    many: bool
    retries: int
    on_error: str  # "dead" | "stop"
    name: str = ""
    where: Where | None = None

    @property
    def columns(self) -> Columns:
        return self.result.columns


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterRows(Passing):
    """Rows for which a Python function says True; False and None are filtered."""

    of: Node
    function: Callable[[Any], Any]
    retries: int
    on_error: str  # "dead" | "stop"
    name: str = ""
    where: Where | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Dedup(Passing):
    """Keeps the first row to arrive for each id, remembered for `within` of event time (rule D1)."""

    of: Node
    id: tuple[tuple[str, Any], ...]
    within: timedelta
    name: str = ""
    where: Where | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed(Passing):
    """Rows in which one of these columns differs from the key's last row, remembered for `keep` of event time."""

    of: Node
    keys: tuple[tuple[str, Any], ...]
    values: tuple[str, ...]
    keep: timedelta
    name: str = ""
    where: Where | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregated(OneInput):
    """Aggregates per key and window. Results have the columns of rule F2. `ranked`: the one value is a list of rows of
    these columns, and a result is a row for each of them, with its rank."""

    of: Node
    keys: tuple[tuple[str, Any], ...]
    window: Window
    lateness: timedelta
    emit: Emit
    values: tuple[Bound, ...]
    having: Any = None  # a condition over the result's columns
    ranked: Columns = ()
    name: str = ""
    where: Where | None = None

    @property
    def columns(self) -> Columns:
        endless = isinstance(self.window, Forever)
        return (
            *(Column(name, value.type) for name, value in self.keys),
            Column("window_start", TIME, endless),
            Column("window_end", TIME, endless),
            KIND,
            Column("revision", INT),
            *((RANK, *self.ranked) if self.ranked else ()),
            *(Column(value.name, value.type, value.nullable) for value in self.values if not self.ranked),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Union:
    """Rows of several streams of the same columns, as one."""

    of: tuple[Node, ...]
    name: str = ""
    where: Where | None = None

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.of

    @property
    def columns(self) -> Columns:
        each = zip(*(node.columns for node in self.of), strict=True)
        return tuple(replace(same[0], nullable=any(column.nullable for column in same)) for same in each)

    @property
    def numbered(self) -> bool:
        """Whether one row of the log can come by two ways: then rows are told apart by their input."""
        sources = [id(source) for node in self.of for source in _sources(node)]
        return len(set(sources)) < len(sources)


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined(Choosing):
    """Rows of two streams with equal keys and `lower` <= right time - left time <= `upper` (rules J1 to J3).
    `names`: of the left and the right row in `values`, the columns that come out."""

    left: Node
    right: Node
    names: tuple[str, str]
    on: tuple[tuple[Any, Any], ...]
    lower: timedelta
    upper: timedelta
    how: str  # inner | left | right | full | semi | anti
    values: tuple[tuple[str, Any], ...]
    name: str = ""
    where: Where | None = None

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)


@dataclass(frozen=True, slots=True, kw_only=True)
class Enriched(Choosing):
    """A stream's rows, each with what a table says for its key: now, or as of the row's time (rule J4).
    `on`: the table's key as the row has it. `wait`: until versions up to the row's time are known."""

    of: Node
    table: ReadTable
    names: tuple[str, str]
    on: tuple[Any, ...]
    as_of: bool
    wait: bool
    values: tuple[tuple[str, Any], ...]
    name: str = ""
    where: Where | None = None

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.of, self.table)


@dataclass(frozen=True, slots=True, kw_only=True)
class LookedUp(OneInput, Choosing):
    """A stream's rows, each with the row of a static table for its key. `rows`: the whole table, events in the order of
    their keys. `on`: the table's key as the stream's row has it."""

    of: Node
    event: EventType
    rows: tuple[Any, ...]
    names: tuple[str, str]
    on: tuple[Any, ...]
    values: tuple[tuple[str, Any], ...]
    name: str = ""
    where: Where | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Side(OneInput):
    """Another output of a step: its late rows, its duplicates, rows without partner, partial matches."""

    of: Dedup | Aggregated | Joined | Enriched | Featured | Pattern
    port: str
    where: Where | None = None

    @property
    def name(self) -> str:
        return ""

    @property
    def columns(self) -> Columns:
        return dict(ports(self.of))[self.port]


Node = (
    Read
    | ReadTable
    | Filter
    | Project
    | MapRows
    | FilterRows
    | Dedup
    | Changed
    | Aggregated
    | Union
    | Joined
    | Enriched
    | LookedUp
    | Featured
    | Decided
    | Pattern
    | Side
    | Changing
    | ChangeRows
)

SIDE = Column("side", TEXT)
WATERMARK = Column("watermark", TIME)


def ports(node: Node) -> tuple[tuple[str, Columns], ...]:
    """A step's outputs and their columns. The side outputs of a join have the columns of the join, null for the other
    side, and say which side a row is of."""
    rows = ("rows", node.columns)
    match node:
        case Dedup():
            return (rows, ("duplicates", node.columns))
        case Aggregated():
            return (rows, ("late", (*node.of.columns, WATERMARK)))
        case Joined():
            alone = tuple(replace(column, nullable=True) for column in node.columns)
            return (rows, ("late", (*alone, SIDE, WATERMARK)), ("unmatched", (*alone, SIDE)))
        case Enriched(as_of=True) | Featured(once=None):
            return (rows, ("late", (*node.of.columns, WATERMARK)))
        case Featured():
            return (rows, ("late", (*node.of.columns, WATERMARK)), ("duplicates", node.of.columns))
        case Pattern():
            return (rows, ("timeouts", node.timeouts))
        case _:
            return (rows,)


def _sources(node: Node) -> tuple[Node, ...]:
    return tuple(source for of in node.inputs for source in _sources(of)) if node.inputs else (node,)
