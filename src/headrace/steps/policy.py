"""Deciding: what a policy says of a row, with its reasons; pure, and the same in the kernel (jvm/Policy.scala)."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from headrace.base.errors import DoesNotFit
from headrace.expr import by_index, compile
from headrace.expr.types import Columns
from headrace.model.policy import Policy, strictest
from headrace.steps import trees

NOTHING = "nothing is published"
"""The reason of a decision without a policy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What is said of a row. `policy_seen`: the place of the policy in the log; `shadow`: what another one would have
    said, as JSON."""

    decision: str
    reasons: tuple[str, ...]
    score: float | None = None
    rules_version: str = ""
    model_version: str = ""
    policy_seen: str = ""
    shadow: str | None = None

    @property
    def values(self) -> tuple[Any, ...]:
        """As columns, in their order."""
        versions = self.rules_version, self.model_version, self.policy_seen
        return (self.decision, list(self.reasons), self.score, *versions, self.shadow)


class Judge:
    """A policy ready to be asked about rows of these columns. `seen`: its place in the log, `fraud.policy/0@9`."""

    def __init__(self, policy: Policy, columns: Columns, seen: str = "") -> None:
        bound, read = policy.bound(columns), by_index(columns)
        self._names = [column.name for column in columns]
        self.policy = policy
        self.seen = seen
        self._rules = [(rule, compile(when, read)) for rule, when in zip(policy.rules, bound.conditions, strict=True)]
        self._asked = [compile(value, read) for value in bound.asked]
        self._thresholds = thresholds(policy)
        self._versions = policy.rules_version, policy.model_version

    def decide(self, row: Mapping[str, Any], *, model: bool = True) -> Decision:
        """What is said of a row, its values by name; one that is not there is null. Without `model` the rules alone
        are asked: they can do with less than the whole row."""
        return self.judge([row.get(name) for name in self._names], model=model)

    def judge(self, values: Sequence[Any], *, model: bool = True) -> Decision:
        """Rules in their order, then the model; the strictest action that any of them asks for. A rule whose condition
        cannot be computed does not hold, and the reasons say so."""
        actions, reasons, ended = list[str](), list[str](), False
        for rule, when in self._rules:
            try:
                holds = when(values)
            except DoesNotFit as misfit:
                reasons.append(f"{rule.name}: {misfit.what}")
                continue
            if holds:
                actions.append(rule.action)
                reasons.append(rule.said)
                if ended := rule.final:
                    break
        asked = self._values(values)
        score = trees.score(self.policy.model, asked) if model and self.policy.model is not None else None
        if score is not None and not ended:
            for action, least, words in self._thresholds:
                if score >= least:
                    actions.append(action)
                    reasons.append(f"model: {score:z.4f}{words}{self._because(asked)}")
                    break
        return Decision(
            decision=strictest(actions),
            reasons=tuple(reasons),
            score=score,
            rules_version=self._versions[0],
            model_version=self._versions[1] if model else "",
            policy_seen=self.seen,
        )

    def _values(self, values: Sequence[Any]) -> list[float]:
        """What the model is asked with."""
        return [math.nan if (value := one(values)) is None else value for one in self._asked]

    def _because(self, asked: list[float]) -> str:
        assert self.policy.model is not None
        raised = trees.raised_by(self.policy.model, asked)
        return f", raised by {', '.join(raised)}" if raised else ""


def thresholds(policy: Policy) -> list[tuple[str, float, str]]:
    """From the strictest to the mildest: the action, the least score, and the end of the reason."""
    return [(action, least, f" >= {least:g}") for action, least in reversed(list(policy.thresholds.items()))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What holds at a moment: the policy that decides and the one in its shadow, if they are there."""

    default: str
    active: Judge | None = None
    shadow: Judge | None = None

    def put(self, judge: Judge | None, *, shadow: bool) -> Standing:
        """What holds when this one was published."""
        return replace(self, shadow=judge) if shadow else replace(self, active=judge)

    def decide(self, row: Mapping[str, Any], *, model: bool = True) -> Decision:
        """As Judge.decide, or the default if nothing is published."""
        return self._said(lambda judge: judge.decide(row, model=model))

    def judge(self, values: Sequence[Any]) -> Decision:
        """What is said of a row, its values in the order of the columns."""
        return self._said(lambda judge: judge.judge(values))

    def _said(self, ask: Callable[[Judge], Decision]) -> Decision:
        found = Decision(decision=self.default, reasons=(NOTHING,)) if self.active is None else ask(self.active)
        return found if self.shadow is None else replace(found, shadow=_told(ask(self.shadow)))


def _told(said: Decision) -> str:
    """As JSON. The score with nine digits after the point: languages differ in how they write a float."""
    words = partial(json.dumps, ensure_ascii=False)
    score = "null" if said.score is None else f"{said.score:z.9f}"
    return (
        f'{{"decision":{words(said.decision)},"reasons":[{",".join(map(words, said.reasons))}],"score":{score},'
        f'"rules_version":{words(said.rules_version)},"model_version":{words(said.model_version)},'
        f'"policy_seen":{words(said.policy_seen)}}}'
    )
