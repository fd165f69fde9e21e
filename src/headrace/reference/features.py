"""Features: a stream's rows, each with what is known of its key when it comes."""

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
        super().__init__(step, setting, [row_of([value for _, value in node.keys], node.of.columns)])
        self._spec: features.Spec = step_of(node)[1]
        self._asked = row_of(list(node.asked), node.of.columns)
        self._into = [plain.into(one.type) for one in node.asked]
        self._back = [plain.back(column.type) for column in node.features]

    def fresh(self) -> features.State:
        return features.State()

    def judge(self, key: Key, state: Any, row: Travelling, number: int, before: int | None) -> tuple[str, list[Given]]:
        seen = Row(row.order[0], row.order, plain.each(self._into, self._asked(row.values)))
        verdict, told = features.step(self._spec, state, seen, before)
        if verdict is not USED:
            return verdict, []
        return verdict, [("rows", row._replace(values=(*row.values, *plain.each(self._back, told))))]

    def elapse(self, key: Key, state: Any, watermark: int | None, clock: int) -> tuple[list[Given], int]:
        features.on_time(self._spec, state, watermark)
        return [], 0

    def due(self, state: Any) -> int | None:
        return features.due(self._spec, state)
