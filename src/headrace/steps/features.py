"""Features: what is known of a key at each of its rows, told at once and never corrected (docs/features.md).

A row is put behind all that are not younger than it. Its window (t - delay - size, t - delay] then holds the rows of
these times that have come so far, itself included if there is no delay; what comes later changes no vector that was
told. A silence of `ttl` cuts: nothing before it is known after it.

| time, amount; over 10 min, ttl 1 h | times | last |                                     |
|------------------------------------|-------|------|-------------------------------------|
| 10:00 5                            | 1     | null |                                     |
| 10:08 7                            | 2     | 5    |                                     |
| 10:04 9                            | 2     | 5    | the one of 10:08 is younger         |
| 10:12 1                            | 3     | 7    | the one of 10:00 has left           |
| 11:12 2                            | 1     | null | an hour of silence: the key is anew |

Rows are kept while a row that is not late can ask for them: it is not older than W - lateness.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from headrace.steps import aggregate
from headrace.steps.algebra import Algebra
from headrace.steps.row import LATE, MILLI, NAN, TOO_MANY, USED, Row, up_to_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Times in micros. `places`: where each aggregate's argument stands among the row's args, -1: it has none."""

    size: int
    delay: int
    aggregates: tuple[aggregate.Spec, ...]
    places: tuple[int, ...]
    algebras: tuple[Algebra, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "algebras", tuple(map(aggregate.algebra, self.aggregates)))

    def as_json(self) -> dict[str, Any]:
        return {
            "size": self.size,
            "delay": self.delay,
            "aggregates": [one.as_json() for one in self.aggregates],
            "places": self.places,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """Times in micros. `last`: (place among the row's args, of how many rows). `most`: rows that a key may hold.
    `kept`: where the args stand among the columns that a kernel sees."""

    windows: tuple[Window, ...]
    last: tuple[tuple[int, int], ...]
    ttl: int
    lateness: int
    most: int
    kept: tuple[int, ...]
    reach: int = field(init=False)  # how far back the windows look
    rows: int = field(init=False)  # how many rows before are asked for, however old
    floats: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "reach", max((w.size + w.delay for w in self.windows), default=0))
        object.__setattr__(self, "rows", max((n for _, n in self.last), default=0))
        arguments = [pair for w in self.windows for pair in zip(w.places, w.aggregates, strict=True)]
        object.__setattr__(self, "floats", tuple({place for place, one in arguments if one.of == "float"}))

    def as_json(self) -> dict[str, Any]:
        return {
            "step": "features",
            "windows": [window.as_json() for window in self.windows],
            "last": self.last,
            "ttl": self.ttl,
            "lateness": self.lateness,
            "most": self.most,
            "kept": self.kept,
        }


class Known(NamedTuple):
    """What is kept of a row."""

    time: int
    args: tuple[Any, ...]


@dataclass(slots=True)
class State:
    """One key: its rows by time, those of one time as they came."""

    rows: list[Known] = field(default_factory=list)

    @property
    def empty(self) -> bool:
        return not self.rows

    @property
    def held(self) -> int:
        return 0  # they are remembered, the rows have gone on


def step(spec: Spec, state: State, row: Row, before: int | None) -> tuple[str, tuple[Any, ...]]:
    """The verdict on a row, and if it is used its features: of each window its values, then those of rows before."""
    if before is not None and row.time + spec.lateness < before * MILLI:
        return LATE, ()
    if any(row.args[i] is not None and not math.isfinite(row.args[i]) for i in spec.floats):
        return NAN, ()
    if len(state.rows) >= spec.most:
        _drop(spec, state, before)
        if len(state.rows) >= spec.most:
            return TOO_MANY, ()
    at = bisect_right(state.rows, row.time, key=_time)
    state.rows.insert(at, Known(row.time, row.args))
    return USED, tuple(_vector(spec, state.rows, row.time, at, at + 1))


def known_at(spec: Spec, state: State, time: int) -> tuple[Any, ...]:
    """What is known of the key at a time, without a row: windows end there, and the row before is the newest."""
    end = bisect_right(state.rows, time, key=_time)
    return tuple(_vector(spec, state.rows, time, end, end))


def on_time(spec: Spec, state: State, watermark: int | None) -> None:
    """Forgets what no row can ask for any more."""
    _drop(spec, state, watermark)


def due(spec: Spec, state: State) -> int | None:
    """The next watermark, in ms, at which `on_time` forgets all that windows ask for, or the key. What it could forget
    before waits for the key's next row: a quiet key is woken twice, not once for each of its rows."""
    if not state.rows:
        return None
    kept = min(spec.reach, spec.ttl) if len(state.rows) > spec.rows else spec.ttl
    return up_to_ms(state.rows[-1].time + kept + spec.lateness)


def _vector(spec: Spec, rows: list[Known], time: int, at: int, end: int) -> list[Any]:
    """The features at a time: rows up to place `at` come before it, windows hold rows up to `end`."""
    known, after = at, time  # the first row after the last silence, and the time of the one after it
    while known and after - rows[known - 1].time < spec.ttl:
        known -= 1
        after = rows[known].time
    told: list[Any] = []
    for window in spec.windows:
        until = time - window.delay
        first = bisect_right(rows, until - window.size, known, end, key=_time)
        told += _values(window, rows, first, bisect_right(rows, until, first, end, key=_time))
    for place, n in spec.last:
        before = [seen.args[place] for seen in rows[max(known, at - n) : at]]
        told.append(before[::-1] if n > 1 else before[0] if before else None)
    return told


def _values(window: Window, rows: list[Known], first: int, end: int) -> list[Any]:
    """The aggregates over rows from `first` to before `end`."""
    told = []
    for algebra, place in zip(window.algebras, window.places, strict=True):
        total = algebra.empty()
        for i in range(first, end):
            order = (rows[i].time, i, 0, 0, "")
            total = algebra.add(total, None if place < 0 else rows[i].args[place], order)
        told.append(algebra.value(total))
    return told


def _drop(spec: Spec, state: State, watermark: int | None) -> None:
    """A row that can still come is not older than `oldest`."""
    rows = state.rows
    if watermark is None or not rows:
        return
    oldest = watermark * MILLI - spec.lateness
    if rows[-1].time + spec.ttl <= oldest:
        rows.clear()
        return
    unasked = bisect_right(rows, oldest, key=_time) - spec.rows
    del rows[: max(0, min(bisect_right(rows, oldest - spec.reach, key=_time), unasked))]


def _time(seen: Known) -> int:
    return seen.time
