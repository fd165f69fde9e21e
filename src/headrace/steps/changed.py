"""Changed: a row passes if it says something else than the key's last row; others are filtered.

Rows are compared in order of arrival. The first row of a key passes, and so does one that comes `keep` or more of event
time after the last: by then the last one is forgotten. As in dedup, distance in event time decides, not memory.

| time, country, keep 1 h | verdict                           |
|-------------------------|-----------------------------------|
| 10:00 SE                | used                              |
| 10:05 SE                | filtered                          |
| 10:10 FR                | used                              |
| 10:08 SE                | used: it came after the one of FR |
| 11:10 SE                | used: the last is forgotten       |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headrace.steps.emission import Passes
from headrace.steps.row import FILTERED, MILLI, USED, Result, Row, up_to_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """`keep`: micros. `values`: where those that are compared stand among the row's columns; here they are its args."""

    keep: int
    values: tuple[int, ...]

    def as_json(self) -> dict[str, Any]:
        return {"step": "changed", "keep": self.keep, "values": self.values}


@dataclass(slots=True)
class State:
    """One key: the values of its last row, and the greatest time of its rows, micros; None: it is not known."""

    time: int | None = None
    values: tuple[Any, ...] = ()

    @property
    def empty(self) -> bool:
        return self.time is None

    @property
    def held(self) -> int:
        return 0  # the values are remembered, the row has gone on


def step(spec: Spec, state: State, row: Row, before: int | None) -> str:
    known = state.time is not None and row.time - state.time < spec.keep
    same = known and all(map(_same, row.args, state.values))
    state.time = row.time if state.time is None else max(state.time, row.time)
    state.values = row.args
    return FILTERED if same else USED


def on_time(
    spec: Spec, state: State, watermark: int | None, clock: int, passes: Passes | None = None
) -> tuple[list[Result], int]:
    """Forgets the key when its time is up."""
    if state.time is not None and watermark is not None and state.time + spec.keep <= watermark * MILLI:
        state.time, state.values = None, ()
    return [], 0


def due(spec: Spec, state: State) -> int | None:
    """The next watermark, in ms, at which `on_time` has something to do."""
    return None if state.time is None else up_to_ms(state.time + spec.keep)


def _same(one: Any, other: Any) -> bool:
    """Null equals null here, and what is no number equals itself."""
    return bool(one == other or (one != one and other != other))
