"""A schedule: batches of rows, each with the watermark after it (rule R1), and the rows that travel inside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from headrace.steps.row import Order

DERIVED = 1_000
"""The source of a row that a step made: DERIVED + the step's ordinal (rule R2)."""


class Tombstone(NamedTuple):
    """In place of a table's row: the row of this key has gone."""

    key: tuple[Any, ...]


class Arrival(NamedTuple):
    """A row of the log. `source`: its topic's place among the flow's topics, sorted by name."""

    time: int  # event time, micros
    source: int
    partition: int
    offset: int
    values: tuple[Any, ...] | Tombstone


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows, the watermark after them in ms (None: none yet), and the batch's processing time in ms."""

    rows: Sequence[Arrival]
    watermark: int | None
    clock: int


class Travelling(NamedTuple):
    """A row between steps. `id`: its stable id, "" where its `cause` makes it at the exit (rule D2)."""

    order: Order
    id: str
    cause: str
    values: tuple[Any, ...]


class Record(NamedTuple):
    """A row as it left: what would be written to a topic or a store, by its label. Of a view that is the row, or a
    tombstone."""

    topic: str
    key: str | None
    id: str
    time: int  # micros
    values: tuple[Any, ...] | Tombstone


class Dead(NamedTuple):
    """A dead letter: where the row came from (a topic, or the step that made it), which step refused it, and why."""

    origin: str
    cause: str
    step: str
    reason: str
    error: str
    values: tuple[Any, ...]
