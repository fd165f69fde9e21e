"""Tumbling and hopping windows, kept as slices: the pieces of time that whole windows are made of.

A row updates the one slice it lies in, not the size / every windows around it; a window's result merges its slices.
By processing time (rule W7) it is the same step: the caller gives rows the batch's clock as time, and the clock as
watermark; then no row is ever late.

| hopping 10 min every 5 min | slice 10:00 | slice 10:05 | slice 10:10 |
|----------------------------|-------------|-------------|-------------|
| window 10:00 - 10:10       | x           | x           |             |
| window 10:05 - 10:15       |             | x           | x           |
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from headrace.steps import aggregate
from headrace.steps.emission import Passes, Policy, Sent, kind_due, send
from headrace.steps.row import HELD, LATE, MILLI, Result, Row, up_to_ms
from headrace.steps.tally import Tally


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """Times in micros. Tumbling: `every` = `size`."""

    size: int
    every: int
    offset: int = 0
    lateness: int = 0
    by_clock: bool = False
    emit: Policy = Policy()  # noqa: RUF009 - frozen
    having: bool = False
    aggregates: tuple[aggregate.Spec, ...]
    tally: Tally = field(init=False, repr=False, compare=False)
    slice: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tally", Tally(self.aggregates))
        object.__setattr__(self, "slice", math.gcd(self.size, self.every))

    def as_json(self) -> dict[str, Any]:
        return {
            "step": "slices",
            "size": self.size,
            "every": self.every,
            "offset": self.offset,
            "lateness": self.lateness,
            "by_clock": self.by_clock,
            "emit": self.emit.as_json(),
            "having": self.having,
            "aggregates": [a.as_json() for a in self.aggregates],
        }

    def slice_of(self, time: int) -> int:
        """Start of the slice a time lies in."""
        return time - (time - self.offset) % self.slice

    def last_window(self, slice: int) -> int:
        """Start of the last window that contains the slice; the first starts `size - slice` or less before it."""
        return slice - (slice - self.offset) % self.every

    def first_window(self, slice: int) -> int:
        """Start of the first window that contains the slice: the first start after `slice - size`."""
        after = slice - self.size
        return after - (after - self.offset) % self.every + self.every

    def gone(self, slice: int) -> int:
        """The time at which every window that contains the slice is gone (rule W4)."""
        return self.last_window(slice) + self.size + self.lateness


@dataclass(slots=True)
class Slice:
    """The rows of one slice."""

    rows: int
    states: list[Any]


@dataclass(slots=True)
class State:
    """One key. `time`: up to where it has seen time pass, micros (None: no watermark yet).
    `changed`: a row came since the last `on_time` that may ask for a result at once; false between batches."""

    slices: dict[int, Slice] = field(default_factory=dict)  # by start
    sent: dict[int, Sent] = field(default_factory=dict)  # windows that sent something, by start
    time: int | None = None
    due: int | None = None  # micros
    changed: bool = False

    @property
    def empty(self) -> bool:
        return not self.slices

    @property
    def held(self) -> int:
        return sum(s.rows for s in self.slices.values())


def step(spec: Spec, state: State, row: Row, before: int | None) -> str:
    """Puts the row into its slice, unless every window around it is gone: then it is late."""
    _pass_time(state, before)
    start = spec.slice_of(row.time)
    if state.time is not None and spec.gone(start) <= state.time:
        return LATE
    found = state.slices.get(start)
    reason = spec.tally.refuses(None if found is None else found.states, row)
    if reason:
        return reason
    if found is None:
        found = state.slices[start] = Slice(0, spec.tally.empty())
        due = _due_of(spec, start, state.time)
        if state.due is None or due < state.due:
            state.due = due
    found.rows += 1
    spec.tally.add(found.states, row)
    if spec.emit.before_close or (state.time is not None and spec.first_window(start) + spec.size <= state.time):
        state.changed = True
    return HELD


def on_time(
    spec: Spec, state: State, watermark: int | None, clock: int, passes: Passes | None = None
) -> tuple[list[Result], int]:
    """Moves time to the watermark: finals of the windows it closes, corrections of closed ones that got rows, early
    results of open ones, by start; then drops what is gone. Gives results and the number of rows dropped."""
    time = state.time if watermark is None else watermark * MILLI
    if not state.changed and (time is None or state.due is None or time < state.due):
        return [], 0
    out: list[Result] = []
    for start in _windows(spec, state, time):
        rows = _rows(spec, state, start)
        sent = state.sent.get(start) or Sent()
        end = start + spec.size
        kind = kind_due(spec.emit, sent, rows, time is not None and end <= time, state.changed, clock)
        if kind:
            values = spec.tally.values(_merged(spec, state, start))
            cause = f"{start}/{end}/{sent.revision}"
            send(out, sent, Result(start, end, kind, sent.revision, values, end - 1, cause), rows, clock, passes)
            state.sent[start] = sent
    state.changed = False
    state.time = time
    return out, _drop(spec, state)


def due(spec: Spec, state: State) -> int | None:
    """The next watermark, in ms, at which `on_time` has something to do."""
    return None if state.due is None else up_to_ms(state.due)


def _pass_time(state: State, before: int | None) -> None:
    """Time may have passed unseen while nothing was due."""
    if before is not None and (state.time is None or before * MILLI > state.time):
        state.time = before * MILLI


def _windows(spec: Spec, state: State, time: int | None) -> Iterator[int]:
    """Starts of the windows that hold rows, are not gone and can be asked for a result, each once, in order."""
    after: int | None = None  # windows up to here have been given
    for slice in sorted(state.slices):
        start = spec.first_window(slice)
        if after is not None and start <= after:
            start = after + spec.every
        last = spec.last_window(slice)
        while start <= last:
            if not spec.emit.before_close and (time is None or start + spec.size > time):
                return  # this window and all after it are open
            if state.time is None or start + spec.size + spec.lateness > state.time:
                yield start
            after = start
            start += spec.every


def _rows(spec: Spec, state: State, start: int) -> int:
    total = 0
    for at in range(start, start + spec.size, spec.slice):
        found = state.slices.get(at)
        if found is not None:
            total += found.rows
    return total


def _merged(spec: Spec, state: State, start: int) -> list[Any]:
    merged = spec.tally.empty()
    for at in range(start, start + spec.size, spec.slice):
        found = state.slices.get(at)
        if found is not None:
            spec.tally.merge(merged, found.states)
    return merged


def _drop(spec: Spec, state: State) -> int:
    """Drops slices and windows that are gone, and finds the next due time."""
    used = 0
    if state.time is not None:
        for start in [s for s in state.slices if spec.gone(s) <= state.time]:
            used += state.slices.pop(start).rows
        for start in [w for w in state.sent if w + spec.size + spec.lateness <= state.time]:
            del state.sent[start]
    state.due = None
    for start in state.slices:
        due = _due_of(spec, start, state.time)
        if state.due is None or due < state.due:
            state.due = due
    return used


def _due_of(spec: Spec, slice: int, time: int | None) -> int:
    """When a slice next needs attention: the next close of a window around it; after the last one, when it is gone."""
    end = spec.first_window(slice) + spec.size
    if time is not None and end <= time:
        end += ((time - end) // spec.every + 1) * spec.every
    return end if end <= spec.last_window(slice) + spec.size else spec.gone(slice)
