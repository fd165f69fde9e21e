"""Patterns: rows of all inputs in one layout, matches and timeouts as rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from headrace.base.errors import DoesNotFit
from headrace.expr import by_index, compile
from headrace.expr.types import Column, Columns
from headrace.model import declared, matched
from headrace.plan.plan import Step
from headrace.reference.batch import Dead, Travelling
from headrace.reference.meeting import Meeting
from headrace.reference.operator import Setting
from headrace.reference.stateful import Given
from headrace.reference.stateless import Evaluate, row_of
from headrace.reference.timers import Key
from headrace.steps import pattern, plain
from headrace.steps.pattern_slots import Condition, condition, output
from headrace.steps.pattern_state import MATCH, REFUSED, Found
from headrace.steps.row import USED, Row
from headrace.steps.spec import step_of


class Pattern(Meeting):
    """Rows of a key that follow each other."""

    def __init__(self, step: Step, setting: Setting, node: declared.Pattern) -> None:
        inputs = list(zip(node.keys, node.of, strict=True))
        super().__init__(step, setting, [row_of([value for _, value in key], of.columns) for key, of in inputs])
        spec = step_of(node, arrival=setting.arrival)[1]
        conditions = tuple(map(_condition, [node.layout] * len(spec.asks), node.conditions, spec.asks))
        self._spec = replace(spec, conditions=conditions)
        self._args = [_plain_row(node, number) for number in range(len(node.of))]
        self._back = _converted(node.given)
        self._values = row_of([value for _, value in node.values], node.given)

    def fresh(self) -> pattern.State:
        return pattern.State()

    def judge(self, key: Key, state: Any, row: Travelling, number: int, before: int | None) -> tuple[str, list[Given]]:
        seen = Row(row.order[0], row.order, self._args[number](row.values), row.id or self.setting.cause(row))
        return pattern.step(self._spec, state, seen, before), []

    def unkeyed(self, row: Travelling, number: int, before: int | None) -> tuple[str, list[Given]]:
        """A row without key follows none."""
        return USED, []

    def elapse(self, key: Key, state: Any, watermark: int | None, clock: int) -> tuple[list[Given], int]:
        found, used = pattern.on_time(self._spec, state, watermark, clock)
        return [self._told(key, one) for one in found if not self._refused(key, one)], used

    def due(self, state: Any) -> int | None:
        return pattern.due(self._spec, state)

    def send(self, made: list[Given]) -> None:
        """Both ports alike: the test kit asks for matches by the name of their pattern."""
        for port, row in made:
            self.put_aside([row], port)

    def _told(self, key: Key, found: Found) -> Given:
        values = self._values(self._back(output(self._spec.output, found.rows)))
        return "rows" if found.kind == MATCH else "timeouts", self.made(key, found.time, found.cause, values)

    def _refused(self, key: Key, found: Found) -> bool:
        """A row that would open more partial matches than a key may have is told as a dead letter; it is used all the
        same, by those that are open."""
        if found.kind != REFUSED:
            return False
        cause = found.cause.removeprefix(f"{REFUSED}/")
        topic, *place = cause.rsplit("/", 2)
        words = "its key has as many partial matches as the pattern allows"
        self.setting.dead.append(Dead(topic if place else self.name, cause, self.name, REFUSED, words, key))
        return True


def _plain_row(node: declared.Pattern, number: int) -> Evaluate:
    """From a row of the n-th input to the layout, in plain values."""
    row = row_of(list(node.entering(number)), node.of[number].columns)
    into = [plain.into(column.type) for column in node.layout]
    return lambda values: plain.each(into, row(values))


def _condition(layout: Columns, declared: matched.Condition, slots: Any) -> Condition:
    """A condition whose result does not fit is not true."""
    columns = (*layout, *(Column(ask.name, ask.type, True) for ask in declared.asks))
    read, back = by_index(columns), _converted(columns)
    test = compile(declared.test, read)

    def holds(values: tuple[Any, ...]) -> bool | None:
        try:
            found: bool | None = test(back(values))
        except DoesNotFit:
            return None
        return found

    return condition(slots, holds)


def _converted(columns: Columns) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """From plain values to those of rows."""
    back = [plain.back(column.type) for column in columns]
    return lambda values: plain.each(back, values)
