"""The window without end: one result per key for every batch in which it got a row (rule W6).

It never closes, so its results are all `early`, have no bounds, and no row is late. Their time is the greatest event
time among the rows. With a time to live a key that was silent for so long is forgotten, and begins anew with its next
row; then a row is late that would be forgotten at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from headrace.steps import aggregate
from headrace.steps.emission import Passes, Policy, Sent, kind_due, send
from headrace.steps.row import HELD, LATE, MILLI, Result, Row, up_to_ms
from headrace.steps.tally import Tally


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """`ttl` in micros; 0: for ever."""

    emit: Policy
    ttl: int = 0
    having: bool = False
    aggregates: tuple[aggregate.Spec, ...]
    tally: Tally = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tally", Tally(self.aggregates))

    def as_json(self) -> dict[str, Any]:
        return {
            "step": "forever",
            "emit": self.emit.as_json(),
            "ttl": self.ttl,
            "having": self.having,
            "aggregates": [a.as_json() for a in self.aggregates],
        }


@dataclass(slots=True)
class State:
    """One key; `states` is empty before the first row. `first`: of the row that it began with, which tells its results
    from those of the key before it was forgotten."""

    rows: int = 0
    first: int = 0
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
    if spec.ttl and state.empty and before is not None and row.time + spec.ttl <= before * MILLI:
        return LATE
    states = state.states or spec.tally.empty()
    reason = spec.tally.refuses(states, row)
    if reason:
        return reason
    if state.empty:
        state.first = state.time = row.time
    state.time = max(state.time, row.time)
    state.states = states
    state.rows += 1
    spec.tally.add(states, row)
    state.changed = True
    return HELD


def on_time(
    spec: Spec, state: State, watermark: int | None, clock: int, passes: Passes | None = None
) -> tuple[list[Result], int]:
    """An early result, if the window got a row; then a key that was silent for too long is forgotten."""
    out: list[Result] = []
    kind = kind_due(spec.emit, state.sent, state.rows, False, state.changed, clock)
    if kind:
        revision = state.sent.revision
        values = spec.tally.values(state.states)
        life = f"forever/{state.first}" if spec.ttl else "forever"
        result = Result(None, None, kind, revision, values, state.time, f"{life}/{revision}")
        send(out, state.sent, result, state.rows, clock, passes)
    state.changed = False
    used = 0
    if spec.ttl and not state.empty and watermark is not None and state.time + spec.ttl <= watermark * MILLI:
        used = state.rows
        state.rows, state.states, state.sent = 0, [], Sent()
    return out, used


def due(spec: Spec, state: State) -> int | None:
    """When it is forgotten; only rows make it speak."""
    return up_to_ms(state.time + spec.ttl) if spec.ttl and not state.empty else None
