"""Features: a stream's rows, each with what is known of its key when it comes; rows of others are remembered."""

from __future__ import annotations

from typing import Any

from headrace.model import declared
from headrace.plan.plan import Step
from headrace.reference.batch import Travelling
from headrace.reference.meeting import Meeting
from headrace.reference.operator import Setting
from headrace.reference.stateful import Given
from headrace.reference.stateless import row_of
from headrace.reference.timers import Key
from headrace.steps import features, plain
from headrace.steps.row import USED, Row
from headrace.steps.spec import step_of


class Features(Meeting):
    """Rows stay the rows they were: same place, same id."""

    def __init__(self, step: Step, setting: Setting, node: declared.Featured) -> None:
        numbers = range(len(node.inputs))
        columns = [of.columns for of in node.inputs]
        super().__init__(step, setting, [row_of([key for _, key in node.key_of(n)], columns[n]) for n in numbers])
        self._spec: features.Spec = step_of(node, topics=setting.topics)[1]
        self._shown = [row_of(list(node.shown(n)), columns[n]) for n in numbers]
        self._into = [[plain.into(one.type) for one in node.shown(n)] for n in numbers]
        self._back = [plain.back(column.type) for column in node.features]

    def fresh(self) -> features.State:
        return features.fresh(self._spec)

    def turn(self, number: int) -> int:
        return features.turn(number)

    def judge(self, key: Key, state: Any, row: Travelling, number: int, before: int | None) -> tuple[str, list[Given]]:
        args = plain.each(self._into[number], self._shown[number](row.values))
        shown = Row(row.order[0], row.order, args, row.id or self.setting.cause(row))
        verdict, told = features.step(self._spec, state, shown, before, number)
        if verdict is not USED or number > 0:
            return verdict, []
        return verdict, [("rows", row._replace(values=(*row.values, *plain.each(self._back, told))))]

    def late(self, row: Travelling, number: int) -> tuple[Any, ...] | None:
        """Of those that are only remembered nobody was to be told."""
        return None if number else row.values

    def elapse(self, key: Key, state: Any, watermark: int | None, clock: int) -> tuple[list[Given], int]:
        features.on_time(self._spec, state, watermark)
        return [], 0

    def due(self, state: Any) -> int | None:
        return features.due(self._spec, state)
