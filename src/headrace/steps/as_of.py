"""Enrich as of the row's time: the version with the greatest version time that is not after it (rule J4).

A row waits until W > its time, when versions up to it are known; without `wait` it takes what is there. A version that
comes after the row was answered does not revise it, but answers rows that come later still.
Versions are kept as far back as `history`: the oldest row that can still be answered is W - history old, so that of
the versions up to there only the newest is kept. An older row is late.

| history 10 min         | versions kept     | answer                          |
|------------------------|-------------------|---------------------------------|
| version a 10:00        | a                 |                                 |
| version b 10:20        | a b               |                                 |
| row 10:19, W -> 10:25  | a b               | a                               |
| row 10:21, W -> 10:30  | b                 | b: W - history has reached b    |
| row 10:19              | b                 | late: a is gone                 |

State is a list of small entries on each side, in order R2: rows leave from the front, a version is looked up by time
and dropped from the front. A kernel may keep them in chunks by (side, time).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass, field
from typing import Any

from headrace.steps.row import HELD, LATE, MILLI, USED, Order, Row, up_to_ms
from headrace.steps.version import Enriched, Version


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """`history` in micros. `wait`: rows are held until W > their time; else they are answered as they come."""

    history: int
    wait: bool = True

    def as_json(self) -> dict[str, Any]:
        return {"step": "as_of", "history": self.history, "wait": self.wait}


@dataclass(slots=True)
class State:
    """One key: rows that wait and versions, both in order R2. Versions are remembered, not held: they are used when
    they enter the history."""

    rows: list[Row] = field(default_factory=list)
    versions: list[Version] = field(default_factory=list)

    @property
    def empty(self) -> bool:
        return not self.rows and not self.versions

    @property
    def held(self) -> int:
        return len(self.rows)


def step(spec: Spec, state: State, row: Row, before: int | None) -> tuple[str, list[Enriched]]:
    """Holds the row, or answers it at once. Late when the version of its time may be gone."""
    if _is_late(spec, row, before):
        return LATE, []
    if not spec.wait:
        return USED, [_answer(state, row)]
    insort(state.rows, row, key=_row_order)
    return HELD, []


def unkeyed(spec: Spec, row: Row, before: int | None) -> tuple[str, list[Enriched]]:
    """A row whose key is null meets no version (rule J6): it needs no state and waits for nothing."""
    return (LATE, []) if _is_late(spec, row, before) else (USED, [Enriched(row, None)])


def learn(spec: Spec, state: State, version: Version) -> str:
    """Takes a version of the table into the history, however old it is."""
    insort(state.versions, version, key=_version_order)
    return USED


def on_time(spec: Spec, state: State, watermark: int | None) -> tuple[list[Enriched], int]:
    """Answers the rows that time has passed, in order R2; then drops versions that no row can ask for any more."""
    if watermark is None:
        return [], 0
    passed = bisect_left(state.rows, watermark * MILLI, key=_row_time)
    out = [_answer(state, row) for row in state.rows[:passed]]
    del state.rows[:passed]
    _drop(state, watermark * MILLI - spec.history)
    return out, passed


def due(spec: Spec, state: State) -> int | None:
    """The next watermark, in ms, at which a row has its answer, or at which only the newest version is left."""
    found = []
    if state.rows:
        found.append(up_to_ms(state.rows[0].time + 1))
    if len(state.versions) > 1 or (state.versions and state.versions[0].values is None):
        found.append(up_to_ms(state.versions[-1].time + spec.history))
    return min(found) if found else None


def _is_late(spec: Spec, row: Row, before: int | None) -> bool:
    return before is not None and row.time + spec.history < before * MILLI


def _answer(state: State, row: Row) -> Enriched:
    known = bisect_right(state.versions, row.time, key=_version_time)
    return Enriched(row, state.versions[known - 1].values if known else None)


def _drop(state: State, oldest: int) -> None:
    """Of the versions up to the oldest time that can be asked for, only the newest can be the answer; a tombstone
    answers as nothing does."""
    older = bisect_right(state.versions, oldest, key=_version_time)
    if older:
        newest_deletes = state.versions[older - 1].values is None
        del state.versions[: older if newest_deletes else older - 1]


def _row_time(row: Row) -> int:
    return row.time


def _row_order(row: Row) -> Order:
    return row.order


def _version_time(version: Version) -> int:
    return version.time


def _version_order(version: Version) -> Order:
    return version.order
