"""A table: versions of a key become its net changes, the input of views and of aggregates over tables (rules J5, J6).

| version time, value | table | change, if it is a batch of its own |
|---------------------|-------|-------------------------------------|
| 10:00 a             | a     | insert a                            |
| 10:05 b             | b     | update a -> b                       |
| 10:03 c             | b     | none: it comes late                 |
| 10:07 tombstone     |       | delete b                            |
| 10:06 d             |       | none: the deletion is remembered    |

Every version is used when it comes; the table remembers, it does not hold.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from headrace.steps.change import Change, Told
from headrace.steps.row import USED
from headrace.steps.version import Latest, Version


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """`keep`: how long a deletion is remembered, micros of event time."""

    keep: int

    def as_json(self) -> dict[str, Any]:
        return {"step": "table", "keep": self.keep}


@dataclass(slots=True)
class State:
    """One key. Between batches `told.values` are `latest.values`: a kernel keeps them once."""

    latest: Latest = field(default_factory=Latest)
    told: Told = field(default_factory=Told)

    @property
    def empty(self) -> bool:
        return self.latest.version is None

    @property
    def held(self) -> int:
        return 0


def step(spec: Spec, state: State, version: Version) -> str:
    state.latest.take(version)
    return USED


def on_time(spec: Spec, state: State, watermark: int | None) -> tuple[list[Change], int]:
    """The batch's net change; then forgets a deletion whose time is up."""
    latest = state.latest
    out = [] if latest.version is None else state.told.tell(latest.values, latest.version.time)
    latest.forget(spec.keep, watermark)
    return out, 0


def due(spec: Spec, state: State) -> int | None:
    """The next watermark, in ms, at which `on_time` has something to do."""
    return state.latest.due(spec.keep)
