"""Dedup: the first row to arrive for an id passes, others less than `within` away from it in event time are
duplicates (rule D1).

The key of this step is the id. An id is remembered until W >= time of its row + within. Distance in event time, not
memory, decides: how fast the watermark moves changes nothing for rows that are not behind it. A row that is `within` or
more behind it cannot be told from one that was there before, and is taken for one: a repeat never passes.

| id, time, within 10 min | verdict                             |
|-------------------------|-------------------------------------|
| a 10:00                 | used                                |
| a 10:05                 | duplicate                           |
| a 10:10                 | used: 10 min later is another event |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headrace.steps.emission import Passes
from headrace.steps.row import DUPLICATE, MILLI, USED, Result, Row, up_to_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """Time in micros."""

    within: int

    def as_json(self) -> dict[str, Any]:
        return {"step": "dedup", "within": self.within}


@dataclass(slots=True)
class State:
    """One id: the time of the row that passed, micros."""

    seen: int | None = None

    @property
    def empty(self) -> bool:
        return self.seen is None

    @property
    def held(self) -> int:
        return 0  # the id is remembered, the row has gone on


def step(spec: Spec, state: State, row: Row, before: int | None) -> str:
    if before is not None and row.time + spec.within <= before * MILLI:
        return DUPLICATE
    if state.seen is not None and abs(row.time - state.seen) < spec.within:
        return DUPLICATE
    if state.seen is None or row.time > state.seen:
        state.seen = row.time
    return USED


def on_time(
    spec: Spec, state: State, watermark: int | None, clock: int, passes: Passes | None = None
) -> tuple[list[Result], int]:
    """Forgets the id when its time is up."""
    if state.seen is not None and watermark is not None and state.seen + spec.within <= watermark * MILLI:
        state.seen = None
    return [], 0


def due(spec: Spec, state: State) -> int | None:
    """The next watermark, in ms, at which `on_time` has something to do."""
    return None if state.seen is None else up_to_ms(state.seen + spec.within)
