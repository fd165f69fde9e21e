"""Enrich as of the row's time: the version with the greatest version time that is not after it (rules J4, J7).

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

With a time to live a version answers rows up to its time + ttl, without that moment, and after that none does: it is as
if the row had been deleted then. So its answers are the same however the input is cut into batches.

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
    """`history` in micros. `wait`: rows are held until W > their time; else they are answered as they come. `ttl`: how
    long a version answers that no other follows, micros; 0: for ever."""

    history: int
    wait: bool = True
    ttl: int = 0

    def as_json(self) -> dict[str, Any]:
        return {"step": "as_of", "history": self.history, "wait": self.wait, "ttl": self.ttl}


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
        return USED, [_answer(spec, state, row)]
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
    out = [_answer(spec, state, row) for row in state.rows[:passed]]
    del state.rows[:passed]
    _drop(spec, state, watermark * MILLI - spec.history)
    return out, passed


def due(spec: Spec, state: State) -> int | None:
    """The next watermark, in ms, at which a row has its answer, at which only the newest version is left, or not even
    that."""
    found = []
    if state.rows:
        found.append(up_to_ms(state.rows[0].time + 1))
    if state.versions:
        newest = state.versions[-1]
        if len(state.versions) > 1 or newest.values is None:
            found.append(up_to_ms(newest.time + spec.history))
        elif spec.ttl:
            found.append(up_to_ms(newest.time + spec.ttl + spec.history))
    return min(found) if found else None


def _is_late(spec: Spec, row: Row, before: int | None) -> bool:
    return before is not None and row.time + spec.history < before * MILLI


def _answer(spec: Spec, state: State, row: Row) -> Enriched:
    known = bisect_right(state.versions, row.time, key=_version_time)
    if not known or _is_over(spec, state.versions[known - 1], row.time):
        return Enriched(row, None)
    return Enriched(row, state.versions[known - 1].values)


def _drop(spec: Spec, state: State, oldest: int) -> None:
    """Of the versions up to the oldest time that can be asked for, only the newest can be the answer, unless it is
    over by then."""
    older = bisect_right(state.versions, oldest, key=_version_time)
    if older:
        newest_is_over = _is_over(spec, state.versions[older - 1], oldest)
        del state.versions[: older if newest_is_over else older - 1]


def _is_over(spec: Spec, version: Version, time: int) -> bool:
    """Whether it answers as nothing does at this time: a tombstone, or a row that was not renewed."""
    return version.values is None or (spec.ttl > 0 and version.time + spec.ttl <= time)


def _row_time(row: Row) -> int:
    return row.time


def _row_order(row: Row) -> Order:
    return row.order


def _version_time(version: Version) -> int:
    return version.time


def _version_order(version: Version) -> Order:
    return version.order
