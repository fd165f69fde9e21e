"""Enrich with a table's current value: what the table says when the row is processed (rules J4, J6).

Rows and versions of a batch are given in one order R2: a row sees the versions before it. A row without value, or
whose key is null (the caller need not ask), comes out with none. Every row and version is used when it comes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from headrace.steps.row import USED, Row
from headrace.steps.version import Enriched, Latest, Version


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """`keep`: how long a deletion is remembered, micros of event time."""

    keep: int

    def as_json(self) -> dict[str, Any]:
        return {"step": "current", "keep": self.keep}


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


def learn(spec: Spec, state: State, version: Version) -> str:
    """Takes a version of the table."""
    state.latest.take(version)
    return USED


def on_time(spec: Spec, state: State, watermark: int | None) -> tuple[list[Enriched], int]:
    """Forgets a deletion whose time is up."""
    state.latest.forget(spec.keep, watermark)
    return [], 0


def due(spec: Spec, state: State) -> int | None:
    """The next watermark, in ms, at which `on_time` has something to do."""
    return state.latest.due(spec.keep)
