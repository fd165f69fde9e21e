"""The window without end: one result per key for every batch in which it got a row (rule W6).

It never closes, so its results are all `early`, have no bounds, and no row is late. Their time is the greatest event
time among the rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from headrace.steps import aggregate
from headrace.steps.emission import Passes, Policy, Sent, kind_due, send
from headrace.steps.row import HELD, Result, Row
from headrace.steps.tally import Tally


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    emit: Policy
    having: bool = False
    aggregates: tuple[aggregate.Spec, ...]
    tally: Tally = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tally", Tally(self.aggregates))

    def as_json(self) -> dict[str, Any]:
        return {
            "step": "forever",
            "emit": self.emit.as_json(),
            "having": self.having,
            "aggregates": [a.as_json() for a in self.aggregates],
        }


@dataclass(slots=True)
class State:
    """One key; `states` is empty before the first row."""

    rows: int = 0
    time: int = 0
    states: list[Any] = field(default_factory=list)
    sent: Sent = field(default_factory=Sent)
    changed: bool = False  # a row came since the last `on_time`; false between batches

    @property
    def empty(self) -> bool:
        return self.rows == 0

    @property
    def held(self) -> int:
        return self.rows


def step(spec: Spec, state: State, row: Row, before: int | None) -> str:
    states = state.states or spec.tally.empty()
    reason = spec.tally.refuses(states, row)
    if reason:
        return reason
    state.time = row.time if state.rows == 0 else max(state.time, row.time)
    state.states = states
    state.rows += 1
    spec.tally.add(states, row)
    state.changed = True
    return HELD


def on_time(
    spec: Spec, state: State, watermark: int | None, clock: int, passes: Passes | None = None
) -> tuple[list[Result], int]:
    """An early result, if the window got a row. Nothing is ever dropped."""
    out: list[Result] = []
    kind = kind_due(spec.emit, state.sent, state.rows, False, state.changed, clock)
    if kind:
        revision = state.sent.revision
        values = spec.tally.values(state.states)
        result = Result(None, None, kind, revision, values, state.time, f"forever/{revision}")
        send(out, state.sent, result, state.rows, clock, passes)
    state.changed = False
    return out, 0


def due(spec: Spec, state: State) -> int | None:
    """Never: only rows make it speak."""
    return None
