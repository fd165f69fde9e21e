"""Steps without state: filter, select, Python functions, and the way out."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from headrace.base.clock import from_micros
from headrace.base.errors import DoesNotFit, FunctionFailed
from headrace.base.ids import stable_id
from headrace.base.keys import key_text
from headrace.expr import by_index, compile
from headrace.expr.types import Columns
from headrace.model import declared
from headrace.plan.plan import Exit, Step
from headrace.reference.batch import Record, Tombstone, Travelling
from headrace.reference.operator import Moment, Operator, Setting, Single
from headrace.steps.change import Change
from headrace.steps.emission import RETRACTION
from headrace.steps.function import Condition, Function, trace

Evaluate = Callable[[Any], Any]


class Filter(Single):
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


class Project(Single):
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


class Union(Operator):
    """All rows of all inputs. Where a row of the log may come by two ways, those of the n-th input have "/n" after the
    cause, as rows of a flat map do."""

    def __init__(self, step: Step, setting: Setting, node: declared.Union) -> None:
        super().__init__(step, setting)
        self._numbered = node.numbered

    def meet(self, inputs: list[list[Travelling]], moment: Moment) -> None:
        for number, rows in enumerate(inputs):
            self.counts.used += len(rows)
            self.give([self.numbered(row, number) for row in rows] if self._numbered else rows)


class Calling(Single):
    """A Python function per row; one that fails makes the row a dead letter, or stops (rule B2)."""

    def __init__(
        self,
        step: Step,
        setting: Setting,
        node: declared.MapRows | declared.FilterRows,
        function: Callable[[Any], list[tuple[Any, ...]]],
    ) -> None:
        super().__init__(step, setting)
        self._node = node
        self._function = function

    def take(self, rows: list[Travelling], moment: Moment) -> None:
        made: list[Travelling] = []
        for row in rows:
            try:
                results = self._function(row.values)
            except Exception as broken:
                if self._node.on_error == "stop":
                    name = getattr(self._node.function, "__name__", "the function")
                    raise FunctionFailed(
                        f"{name} failed on {self.setting.cause(row)}: {broken!r}",
                        why=trace(broken),
                        fix='correct it, or say on_error="dead" to set such rows aside',
                        where=self._node.where,
                    ) from broken
                self.bury(row, "function", trace(broken))
            else:
                made.extend(self._rows(row, results))
        self.give(made)

    @abstractmethod
    def _rows(self, row: Travelling, results: list[tuple[Any, ...]]) -> list[Travelling]: ...


class MapRows(Calling):
    """The rows made from one row keep its time; with `flat_map` the n-th has "/n" after the cause."""

    def __init__(self, step: Step, setting: Setting, node: declared.MapRows) -> None:
        names = [column.name for column in node.of.columns]
        function = Function(node.function, names, node.result, many=node.many, retries=node.retries)
        super().__init__(step, setting, node, function)
        self._many = node.many

    def _rows(self, row: Travelling, results: list[tuple[Any, ...]]) -> list[Travelling]:
        self.counts.used += 1
        if not self._many:
            return [row._replace(values=results[0])]
        return [self.numbered(row, n)._replace(values=values) for n, values in enumerate(results)]


class FilterRows(Calling):
    """True passes; False and None are filtered."""

    def __init__(self, step: Step, setting: Setting, node: declared.FilterRows) -> None:
        names = [column.name for column in node.of.columns]
        super().__init__(step, setting, node, Condition(node.function, names, retries=node.retries))

    def _rows(self, row: Travelling, results: list[tuple[Any, ...]]) -> list[Travelling]:
        self.counts.used += len(results)
        self.counts.filtered += 1 - len(results)
        return [row] if results else []


class Leaving:
    """An exit: rows become records with key and stable id. Of a row of the log the id is made here."""

    def __init__(self, exit: Exit, setting: Setting) -> None:
        self.inbox: list[Travelling] = []
        self._place = exit.target.label
        self._setting = setting
        self._key = row_of([value for _, value in exit.key], exit.columns) if exit.key else None
        self._step = setting.flow.step(exit.input.step).name
        self._written = _FORMS[exit.form]
        self._names = [column.name for column in exit.columns]
        self._kind = exit.columns.index(declared.KIND) if exit.retracts else None

    def run(self) -> None:
        plan, place, key_of = self._setting.plan, self._place, self._key
        records = self._setting.records
        for row in self.inbox:
            shown = row.values if self._written is None else _row(Change(*row.values))
            try:
                key = None if key_of is None else key_of(shown)
            except DoesNotFit as misfit:
                self._setting.bury(row, self._step, misfit.code, misfit.what)
                continue
            text = None if key is None else key_text(key)
            id = row.id or stable_id(plan.app, plan.version, place, text or "", self._setting.cause(row))
            values = row.values if self._written is None else self._written(Change(*row.values), key or (), self._names)
            if self._kind is not None and values[self._kind] == RETRACTION:
                values = Tombstone(key or ())
            records.append(Record(place, text, id, row.order[0], values))
        self.inbox.clear()


def _row(change: Change) -> tuple[Any, ...]:
    """A row that has the change's key."""
    found = change.before if change.after is None else change.after
    assert found is not None
    return found


def _upsert(change: Change, key: tuple[Any, ...], names: list[str]) -> tuple[Any, ...] | Tombstone:
    return Tombstone(key) if change.after is None else change.after


def _told(change: Change, key: tuple[Any, ...], names: list[str]) -> tuple[Any, ...]:
    before, after = (
        None if values is None else dict(zip(names, values, strict=True)) for values in (change.before, change.after)
    )
    return change.op, key_text(key), before, after, from_micros(change.version)


_FORMS: dict[str, Callable[[Change, tuple[Any, ...], list[str]], tuple[Any, ...] | Tombstone] | None] = {
    "rows": None,
    "upserts": _upsert,
    "changes": _told,
}
"""What is written of a change (rule F2); rows are written as they are."""


def row_of(expressions: list[Any], columns: Columns) -> Callable[[Any], tuple[Any, ...]]:
    """One function from a row's values to the tuple of these expressions."""
    read = by_index(columns)
    functions = [compile(expression, read) for expression in expressions]
    if len(functions) == 1:
        (only,) = functions
        return lambda values: (only(values),)
    return lambda values: tuple([function(values) for function in functions])
