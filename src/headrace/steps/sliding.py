"""Sliding windows: per row one result over (t - size, t], the rows before it in order R2 and itself (rule W2).

A result comes out once, when W > t. A row that comes behind it within lateness corrects the results it belongs to.
Written half-open the window is [t - size + 1 us, t + 1 us): so it closes at W > t, is gone at W > t + lateness, and the
result's time is t. The result says `window_start` = t - size, `window_end` = t.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Any

from headrace.steps import aggregate
from headrace.steps.emission import CORRECTION, FINAL, Passes, Sent, send
from headrace.steps.row import HELD, LATE, MILLI, Order, Result, Row, up_to_ms
from headrace.steps.running import Running
from headrace.steps.tally import Tally


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """Times in micros."""

    size: int
    lateness: int = 0
    having: bool = False
    aggregates: tuple[aggregate.Spec, ...]
    tally: Tally = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tally", Tally(self.aggregates))

    def as_json(self) -> dict[str, Any]:
        return {
            "step": "sliding",
            "size": self.size,
            "lateness": self.lateness,
            "having": self.having,
            "aggregates": [a.as_json() for a in self.aggregates],
        }


@dataclass(slots=True)
class Held:
    """A row, and what its window has sent. `stale`: a row came behind it since its last result."""

    row: Row
    sent: Sent
    stale: bool = False


@dataclass(slots=True)
class State:
    """One key. `time`: up to where it has seen time pass, micros. `changed`: some row is stale."""

    rows: list[Held] = field(default_factory=list)  # in order R2
    time: int | None = None
    changed: bool = False

    @property
    def empty(self) -> bool:
        return not self.rows

    @property
    def held(self) -> int:
        return len(self.rows)


def step(spec: Spec, state: State, row: Row, before: int | None) -> str:
    """Holds the row; results already sent that it belongs to become stale. Late when its own window is gone."""
    if before is not None and (state.time is None or before * MILLI > state.time):
        state.time = before * MILLI
    if state.time is not None and row.time + spec.lateness < state.time:
        return LATE
    reason = spec.tally.refuses(None, row)
    if reason:
        return reason
    at = bisect_left(state.rows, row.order, key=_order)
    state.rows.insert(at, Held(row, Sent()))
    for i in range(at + 1, len(state.rows)):
        after = state.rows[i]
        if after.row.time >= row.time + spec.size:
            break
        if after.sent.final:  # not gone: it is no older than this row, which is not late
            after.stale = True
            state.changed = True
    return HELD


def on_time(
    spec: Spec, state: State, watermark: int | None, clock: int, passes: Passes | None = None
) -> tuple[list[Result], int]:
    """Results in order R2: finals of the rows that time passes, corrections of stale ones; then drops the rows that no
    window can reach any more."""
    time = state.time if watermark is None else watermark * MILLI
    out: list[Result] = []
    if time is not None:
        _send_due(spec, state, time, clock, passes, out)
    state.changed = False
    state.time = time
    return out, _drop(spec, state)


def due(spec: Spec, state: State) -> int | None:
    """The next watermark, in ms, at which `on_time` has something to do."""
    if not state.rows:
        return None
    gone = state.rows[0].row.time + spec.size + spec.lateness
    for held in state.rows:
        if not held.sent.final:
            return up_to_ms(min(held.row.time + 1, gone))
    return up_to_ms(gone)


def _send_due(spec: Spec, state: State, time: int, clock: int, passes: Passes | None, out: list[Result]) -> None:
    """Walks once over the rows around those that are due."""
    waiting = [i for i, held in enumerate(state.rows) if _is_due(held, time)]
    if not waiting:
        return
    running = Running(spec.tally)
    reach = state.rows[waiting[0]].row.time - spec.size
    at = 0
    while state.rows[at].row.time <= reach:
        at += 1
    for i in range(at, waiting[-1] + 1):
        held = state.rows[i]
        t = held.row.time
        running.enter(held.row)
        running.leave(t - spec.size)
        if _is_due(held, time):
            sent = held.sent
            kind = CORRECTION if sent.final else FINAL
            cause = f"{held.row.cause}/{sent.revision}"
            result = Result(t - spec.size, t, kind, sent.revision, running.values(), t, cause)
            send(out, sent, result, running.rows, clock, passes)
            held.stale = False


def _is_due(held: Held, time: int) -> bool:
    return held.stale or (not held.sent.final and held.row.time < time)


def _drop(spec: Spec, state: State) -> int:
    """A row that can still come is not older than time - lateness, and looks back `size`."""
    if state.time is None:
        return 0
    used = 0
    while used < len(state.rows) and state.rows[used].row.time + spec.size + spec.lateness <= state.time:
        used += 1
    del state.rows[:used]
    return used


def _order(held: Held) -> Order:
    return held.row.order
