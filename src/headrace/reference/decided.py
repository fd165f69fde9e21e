"""Deciding: a stream's rows, each with what the policy that stands says of it."""

from __future__ import annotations

from headrace.model import declared
from headrace.model.policy import Policy
from headrace.plan.plan import Step
from headrace.reference.batch import Travelling
from headrace.reference.operator import Moment, Setting, Single
from headrace.steps.policy import Judge, Standing


class Decided(Single):
    """Rows stay the rows they were: same place, same id."""

    def __init__(self, step: Step, setting: Setting, node: declared.Decided) -> None:
        super().__init__(step, setting)
        self.policy = node.policy
        self._columns = node.of.columns
        self._standing = Standing(default=node.default)

    def publish(self, policy: Policy, seen: str, *, shadow: bool) -> None:
        self._standing = self._standing.put(Judge(policy, self._columns, seen), shadow=shadow)

    def take(self, rows: list[Travelling], moment: Moment) -> None:
        self.counts.used += len(rows)
        judge = self._standing.judge
        self.give([row._replace(values=(*row.values, *judge(row.values).values)) for row in rows])
