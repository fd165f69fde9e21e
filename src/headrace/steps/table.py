"""A table: versions of a key become its net changes, the input of views and of aggregates over tables (rules J5 to J7).

| version time, value | table | change, if it is a batch of its own |
|---------------------|-------|-------------------------------------|
| 10:00 a             | a     | insert a                            |
| 10:05 b             | b     | update a -> b                       |
| 10:03 c             | b     | none: it comes late                 |
| 10:07 tombstone     |       | delete b                            |
| 10:06 d             |       | none: the deletion is remembered    |

Every version is used when it comes; the table remembers, it does not hold.

With a time to live a row is deleted at version time + ttl, if no version has renewed it when W reaches that. One that
comes late may still bring it back, if it is younger and has time left. The end of input is no time that passes: rows
are let go then, and no deletion is told.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from headrace.steps.change import Change, Told
from headrace.steps.row import END, USED, up_to_ms
from headrace.steps.version import Latest, Version


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """`keep`: how long a deletion is remembered, `ttl`: how long a row lives that no version renews (0: for ever),
    both micros of event time."""

    keep: int
    ttl: int = 0

    def as_json(self) -> dict[str, Any]:
        return {"step": "table", "keep": self.keep, "ttl": self.ttl}


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
    """The batch's net change, with the end of a row whose time is up; then forgets a deletion whose time is up."""
    out: list[Change] = []
    if state.latest.version is not None:
        version = state.latest.version
        outlived = version.outlived(spec.ttl, watermark)
        if outlived and watermark != END:
            out = state.told.tell(None, version.time + spec.ttl)
            state.latest.version = version._replace(values=None)
        else:
            out = state.told.tell(version.values, version.time)
            state.latest.version = None if outlived else version
    forgets = _forgets(spec, state)
    if forgets is not None and watermark is not None and forgets <= watermark:
        state.latest.version = None
    return out, 0


def due(spec: Spec, state: State) -> int | None:
    """The next watermark, in ms, at which `on_time` has something to do."""
    version = state.latest.version
    if version is None or version.values is None or not spec.ttl:
        return _forgets(spec, state)
    return up_to_ms(version.time + spec.ttl)


def _forgets(spec: Spec, state: State) -> int | None:
    """The watermark, in ms, at which a deletion is forgotten. What was told of it counts: versions grow over a row's
    return, and that of a row whose time was up is later than its last version."""
    version = state.latest.version
    if version is None or version.values is not None:
        return None
    return up_to_ms(max(version.time, state.told.version) + spec.keep)
