"""Steps without state: filter, select, Python functions, and the way out."""

from __future__ import annotations

import traceback
from collections import namedtuple
from collections.abc import Callable
from typing import Any

from headrace.base.errors import DoesNotFit, FunctionFailed, WrongType
from headrace.base.ids import stable_id
from headrace.base.keys import key_text
from headrace.expr import by_index, compile
from headrace.expr.types import Columns
from headrace.model import declared
from headrace.model.event import EventType
from headrace.plan.plan import Exit, Step
from headrace.reference.batch import Record, Travelling
from headrace.reference.operator import Moment, Operator, Setting

Evaluate = Callable[[Any], Any]


class Filter(Operator):
    """True passes; false and null are filtered."""

    def __init__(self, step: Step, setting: Setting, node: declared.Filter) -> None:
        super().__init__(step, setting)
        self._condition = compile(node.condition, by_index(node.of.columns))

    def take(self, rows: list[Travelling], moment: Moment) -> None:
        condition, passed, filtered = self._condition, [], 0
        for row in rows:
            try:
                if condition(row.values):
                    passed.append(row)
                else:
                    filtered += 1
            except DoesNotFit as misfit:
                self.bury(row, misfit.code, misfit.what)
        self.counts.used += len(passed)
        self.counts.filtered += filtered
        self.give(passed)


class Project(Operator):
    """New columns."""

    def __init__(self, step: Step, setting: Setting, node: declared.Project) -> None:
        super().__init__(step, setting)
        self._values = row_of([value for _, value in node.values], node.of.columns)

    def take(self, rows: list[Travelling], moment: Moment) -> None:
        made = []
        for row in rows:
            try:
                made.append(row._replace(values=self._values(row.values)))
            except DoesNotFit as misfit:
                self.bury(row, misfit.code, misfit.what)
        self.counts.used += len(made)
        self.give(made)


class MapRows(Operator):
    """A Python function per row (rule B2). It sees a row with the columns as attributes.

    The rows made from one row keep its time; with `flat_map` the n-th has "/n" after the cause.
    """

    def __init__(self, step: Step, setting: Setting, node: declared.MapRows) -> None:
        super().__init__(step, setting)
        self._node = node
        # A column may be named like a Python keyword, which no attribute can be: then it is reached by place.
        self._seen = namedtuple("Row", [c.name for c in node.of.columns], rename=True)  # type: ignore[misc]

    def take(self, rows: list[Travelling], moment: Moment) -> None:
        made: list[Travelling] = []
        for row in rows:
            try:
                results = self._call(row)
            except Exception as broken:
                error = "".join(traceback.format_exception(broken)).rstrip()
                if self._node.on_error == "stop":
                    raise FunctionFailed(
                        f"{self._function} failed on {self.setting.cause(row)}: {broken!r}",
                        why=error,
                        fix='correct it, or say on_error="dead" to set such rows aside',
                        where=self._node.where,
                    ) from broken
                self.bury(row, "function", error)
            else:
                self.counts.used += 1
                made.extend(self._rows(row, results))
        self.give(made)

    def _call(self, row: Travelling) -> list[tuple[Any, ...]]:
        """The function's results as values; as many tries as `retries` allow."""
        for left in range(self._node.retries, -1, -1):
            try:
                found = self._node.function(self._seen(*row.values))
                results = list(found) if self._node.many else [found]
                return [_values(result, self._node.result) for result in results]
            except Exception:
                if left == 0:
                    raise
        raise AssertionError("retries are never negative")

    def _rows(self, row: Travelling, results: list[tuple[Any, ...]]) -> list[Travelling]:
        if not self._node.many:
            return [row._replace(values=results[0])]
        time, source, partition, offset, id = row.order
        cause = row.id or self.setting.cause(row)
        return [
            Travelling((time, source, partition, offset, f"{id}/{n:06d}"), "", f"{cause}/{n}", values)
            for n, values in enumerate(results)
        ]

    @property
    def _function(self) -> str:
        return getattr(self._node.function, "__name__", "the function")


class Leaving:
    """An exit: rows become records with key and stable id. Of a row of the log the id is made here."""

    def __init__(self, exit: Exit, setting: Setting, columns: Columns) -> None:
        self.inbox: list[Travelling] = []
        self._topic = exit.topic.name
        self._setting = setting
        self._key = row_of([value for _, value in exit.key], columns) if exit.key else None
        self._step = setting.flow.step(exit.input.step).name

    def run(self) -> None:
        plan, topic, key_of = self._setting.plan, self._topic, self._key
        records = self._setting.records
        for row in self.inbox:
            try:
                key = None if key_of is None else key_text(key_of(row.values))
            except DoesNotFit as misfit:
                self._setting.bury(row, self._step, misfit.code, misfit.what)
                continue
            id = row.id or stable_id(plan.app, plan.version, topic, key or "", self._setting.cause(row))
            records.append(Record(topic, key, id, row.order[0], row.values))
        self.inbox.clear()


def row_of(expressions: list[Any], columns: Columns) -> Callable[[Any], tuple[Any, ...]]:
    """One function from a row's values to the tuple of these expressions."""
    read = by_index(columns)
    functions = [compile(expression, read) for expression in expressions]
    if len(functions) == 1:
        (only,) = functions
        return lambda values: (only(values),)
    return lambda values: tuple([function(values) for function in functions])


def _values(result: Any, wanted: EventType) -> tuple[Any, ...]:
    if getattr(type(result), "__headrace__", None) != wanted:
        raise WrongType(
            f"the function gave {result!r}",
            why=f"its rows are declared to be {wanted.name}",
            fix=f"return {wanted.name}(...); to leave rows out, filter, or use flat_map and give none",
        )
    return tuple([getattr(result, column.name) for column in wanted.columns])
