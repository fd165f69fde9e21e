"""Aggregates per group over a changing table: a retraction subtracts what the row had added (rule J5).

`deltas` splits a change of the table, without state: the row as it was leaves its group, the row as it is enters its
group. `step` works by group. A group that loses its last row is removed, not kept with count 0.

| change of the table      | group DE  | group FR  | changes told                      |
|--------------------------|-----------|-----------|-----------------------------------|
| insert u1 DE 10          | 1 row, 10 |           | DE insert (1, 10)                 |
| insert u2 DE 5           | 2, 15     |           | DE update (1, 10) -> (2, 15)      |
| update u1 DE 10 -> FR 10 | 1, 5      | 1, 10     | DE update, FR insert (1, 10)      |
| delete u2                |           | 1, 10     | DE delete (1, 5)                  |

A row with a float that is no number is a dead letter when it enters (rule B3), and takes nothing with it when it
leaves. A total that its type cannot hold is null while that lasts; the row is not refused, since its retraction could
not know.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from headrace.steps import aggregate
from headrace.steps.change import NO_VERSION, Change, Told
from headrace.steps.retractable import Retractable, retractable
from headrace.steps.row import NAN, USED, Order
from headrace.steps.version import Values

Group = Hashable

_NO_ORDER: Order = (0, 0, 0, 0, "")  # no aggregate over a table asks for it


class Delta(NamedTuple):
    """A row enters its group or leaves it, with one argument for each aggregate."""

    enters: bool
    args: tuple[Any, ...]
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """`keep`: how long the version of a removed group is remembered, micros of event time."""

    keep: int
    aggregates: tuple[aggregate.Spec, ...]
    algebras: tuple[Retractable, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "algebras", tuple(retractable(spec) for spec in self.aggregates))

    def as_json(self) -> dict[str, Any]:
        return {"step": "changelog", "keep": self.keep, "aggregates": [a.as_json() for a in self.aggregates]}


@dataclass(slots=True)
class State:
    """One group; `states` is empty before the first row. `cause`: the greatest version of this batch's deltas,
    NO_VERSION between batches."""

    rows: int = 0
    states: list[Any] = field(default_factory=list)
    told: Told = field(default_factory=Told)
    cause: int = NO_VERSION

    @property
    def empty(self) -> bool:
        return self.rows == 0 and self.told.empty

    @property
    def held(self) -> int:
        return 0  # rows belong to the table; a group only counts them


def deltas(
    before: tuple[Group, tuple[Any, ...]] | None, after: tuple[Group, tuple[Any, ...]] | None, version: int
) -> list[tuple[Group, Delta]]:
    """From a change: `before` and `after` are the row's group and arguments, None where it has none."""
    if before == after:
        return []  # what changed is nothing to the aggregates
    told: list[tuple[Group, Delta]] = []
    if before is not None:
        told.append((before[0], Delta(False, before[1], version)))
    if after is not None:
        told.append((after[0], Delta(True, after[1], version)))
    return told


def step(spec: Spec, state: State, delta: Delta) -> str:
    if any(isinstance(value, float) and not math.isfinite(value) for value in delta.args):
        return NAN if delta.enters else USED
    states = state.states = state.states or [a.empty() for a in spec.algebras]
    for i, algebra in enumerate(spec.algebras):
        if delta.enters:
            states[i] = algebra.add(states[i], delta.args[i], _NO_ORDER)
        else:
            states[i] = algebra.remove(states[i], delta.args[i])
    state.rows += 1 if delta.enters else -1
    state.cause = max(state.cause, delta.version)
    return USED


def on_time(spec: Spec, state: State, watermark: int | None) -> tuple[list[Change], int]:
    """The batch's net change; then forgets a removed group whose time is up."""
    out: list[Change] = []
    if state.cause != NO_VERSION:
        out = state.told.tell(_values(spec, state), state.cause)
        state.cause = NO_VERSION
    state.told.forget(spec.keep, watermark)
    return out, 0


def due(spec: Spec, state: State) -> int | None:
    """The next watermark, in ms, at which `on_time` has something to do."""
    return state.told.due(spec.keep)


def _values(spec: Spec, state: State) -> Values | None:
    if state.rows == 0:
        state.states = []
        return None
    return tuple(a.value(one) for a, one in zip(spec.algebras, state.states, strict=True))
