"""Enrich with a table's current value: what the table says when the row is processed (rules J4, J6, J7).

Rows and versions of a batch are given in one order R2: a row sees the versions before it. A row without value, or
whose key is null (the caller need not ask), comes out with none. Every row and version is used when it comes.

With a time to live a row finds no version that the watermark it meets, W(k-1), has outlived:

| ttl 30 min                   | W after it | answer                                   |
|------------------------------|------------|------------------------------------------|
| version a 10:00              | 10:20      |                                          |
| row 10:31                    | 10:30      | a: W was 10:20                           |
| row 10:29                    | 10:31      | none: W has reached 10:00 + 30 min       |
| version b 10:02, row 10:33   | 10:33      | b: it lives until 10:32, and W was 10:31 |
| version c 10:02, row 10:34   | 10:34      | none: c had outlived its time            |
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from headrace.steps.row import USED, Row
from headrace.steps.version import Enriched, Latest, Version


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """`keep`: how long a deletion is remembered, `ttl`: how long a row lives that no version renews (0: for ever),
    both micros of event time."""

    keep: int
    ttl: int = 0

    def as_json(self) -> dict[str, Any]:
        return {"step": "current", "keep": self.keep, "ttl": self.ttl}


@dataclass(slots=True)
class State:
    """One key."""

    latest: Latest = field(default_factory=Latest)

    @property
    def empty(self) -> bool:
        return self.latest.version is None

    @property
    def held(self) -> int:
        return 0


def step(spec: Spec, state: State, row: Row) -> tuple[str, list[Enriched]]:
    return USED, [Enriched(row, state.latest.values)]


def learn(spec: Spec, state: State, version: Version, before: int | None) -> str:
    """Takes a version of the table, unless it comes when its time is up."""
    if not version.outlived(spec.ttl, before):
        state.latest.take(version)
    return USED


def on_time(spec: Spec, state: State, watermark: int | None) -> tuple[list[Enriched], int]:
    """Forgets a deletion, or a row, whose time is up."""
    state.latest.forget(spec.keep, spec.ttl, watermark)
    return [], 0


def due(spec: Spec, state: State) -> int | None:
    """The next watermark, in ms, at which `on_time` has something to do."""
    return state.latest.due(spec.keep, spec.ttl)
