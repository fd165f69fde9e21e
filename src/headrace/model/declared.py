"""What was declared, as a tree: one frozen node a verb, typed when it is made, each remembering the user's line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from headrace.base.where import Where
from headrace.expr.types import INT, TEXT, TIME, Column, Columns
from headrace.model.aggregate import Bound
from headrace.model.event import EventType
from headrace.model.topic import Topic
from headrace.model.window import Emit, Forever, Window


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
    def columns(self) -> Columns:
        return self.event.columns


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Rows for which the condition is true; false and null are filtered. Columns it could not be true without are no
    longer nullable."""

    of: Node
    condition: Any
    name: str = ""
    where: Where | None = None

    @property
    def columns(self) -> Columns:
        from headrace.expr.implied import never_null

        kept = never_null(self.condition)
        return tuple(replace(c, nullable=False) if c.name in kept else c for c in self.of.columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """New columns from expressions."""

    of: Node
    values: tuple[tuple[str, Any], ...]
    name: str = ""
    where: Where | None = None

    @property
    def columns(self) -> Columns:
        return tuple(Column(name, value.type, value.nullable) for name, value in self.values)


@dataclass(frozen=True, slots=True, kw_only=True)
class MapRows:
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
class Dedup:
    """Keeps the first row to arrive for each id, remembered for `within` of event time (rule D1)."""

    of: Node
    id: tuple[tuple[str, Any], ...]
    within: timedelta
    name: str = ""
    where: Where | None = None

    @property
    def columns(self) -> Columns:
        return self.of.columns


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregated:
    """Aggregates per key and window. Results have the columns of rule F2."""

    of: Node
    keys: tuple[tuple[str, Any], ...]
    window: Window
    lateness: timedelta
    emit: Emit
    values: tuple[Bound, ...]
    having: Any = None  # a condition over the result's columns
    name: str = ""
    where: Where | None = None

    @property
    def columns(self) -> Columns:
        endless = isinstance(self.window, Forever)
        return (
            *(Column(name, value.type) for name, value in self.keys),
            Column("window_start", TIME, endless),
            Column("window_end", TIME, endless),
            Column("kind", TEXT),
            Column("revision", INT),
            *(Column(value.name, value.type, value.nullable) for value in self.values),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """Another output of a step: its late rows, its duplicates."""

    of: Dedup | Aggregated
    port: str  # "late" | "duplicates"
    where: Where | None = None

    @property
    def name(self) -> str:
        return ""

    @property
    def columns(self) -> Columns:
        extra = (Column("watermark", TIME),) if self.port == "late" else ()
        return self.of.of.columns + extra


Node = Read | Filter | Project | MapRows | Dedup | Aggregated | Side


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """A stream's end: rows go to a topic under a key."""

    of: Node
    topic: Topic
    key: tuple[tuple[str, Any], ...]  # empty: no key, round robin
    where: Where | None = None
