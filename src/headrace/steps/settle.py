"""Settle: of a batch's answers for an output key of a view, the one of the greatest cause makes the change (rule J5).

| answers of a batch: cause, row          | told before | change                                    |
|-----------------------------------------|-------------|-------------------------------------------|
| (7, 3) order 7 of Ann                   |             | insert                                    |
| (7, 5) order 7 of Anna                  | of Ann      | update: she was renamed                   |
| (7, 6) of Annie, (9, 2) order 9 of Bob  | of Anna     | update to Bob: the order moved, in either |
|                                         |             | order of arrival                          |
| (11, none) nothing                      | of Bob      | delete                                    |
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from headrace.steps.change import Change, Told
from headrace.steps.row import USED
from headrace.steps.view_join import Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """`keep`: how long the version of a deleted key is remembered, micros of event time."""

    keep: int

    def as_json(self) -> dict[str, Any]:
        return {"step": "settle", "keep": self.keep}


@dataclass(slots=True)
class State:
    """One output key. `answer`: the greatest of this batch; None between batches."""

    told: Told = field(default_factory=Told)
    answer: Answer | None = None

    @property
    def empty(self) -> bool:
        return self.told.empty

    @property
    def held(self) -> int:
        return 0


def step(spec: Spec, state: State, answer: Answer) -> str:
    if state.answer is None or answer.cause > state.answer.cause:
        state.answer = answer
    return USED


def on_time(spec: Spec, state: State, watermark: int | None) -> tuple[list[Change], int]:
    """The batch's net change; then forgets a deleted key whose time is up."""
    out: list[Change] = []
    if state.answer is not None:
        out = state.told.tell(state.answer.values, max(state.answer.cause))
        state.answer = None
    state.told.forget(spec.keep, watermark)
    return out, 0


def due(spec: Spec, state: State) -> int | None:
    """The next watermark, in ms, at which `on_time` has something to do."""
    return state.told.due(spec.keep)
