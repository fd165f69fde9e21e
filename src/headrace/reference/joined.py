"""Joins: two streams within a time bound, a stream with a table, now or as of its time, and with a static one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.base.errors import DoesNotFit
from headrace.expr.types import Column, Columns
from headrace.model import changing, declared
from headrace.plan.plan import Step
from headrace.reference.batch import Tombstone, Travelling
from headrace.reference.meeting import Meeting
from headrace.reference.operator import Moment, Setting, Single
from headrace.reference.stateful import Given
from headrace.reference.stateless import row_of
from headrace.reference.timers import Key
from headrace.steps import as_of, current, interval_join
from headrace.steps.row import USED, Row
from headrace.steps.spec import step_of
from headrace.steps.version import Enriched as Answered
from headrace.steps.version import Version

SIDES = ("left", "right")

Both = Callable[[Any, Any], tuple[Any, ...]]


class Joined(Meeting):
    """Rows of two streams within a time bound."""

    def __init__(self, step: Step, setting: Setting, node: declared.Joined) -> None:
        keys = [row_of([pair[side] for pair in node.on], of.columns) for side, of in enumerate(node.inputs)]
        super().__init__(step, setting, keys)
        self._spec = step_of(node, unmatched=setting.keep_aside or setting.flow.reads(step.ordinal, "unmatched"))[1]
        self._both = both(node)

    def fresh(self) -> interval_join.State:
        return interval_join.State()

    def judge(self, key: Key, state: Any, row: Travelling, number: int, before: int | None) -> tuple[str, list[Given]]:
        verdict, made = interval_join.step(self._spec, state, self._row(row), number, before)
        return verdict, self._told(key, made)

    def unkeyed(self, row: Travelling, number: int, before: int | None) -> tuple[str, list[Given]]:
        verdict, made = interval_join.unkeyed(self._spec, self._row(row), number, before)
        return verdict, self._told((None,), made)

    def late(self, row: Travelling, number: int) -> tuple[Any, ...]:
        return (*(self._both(row.values, None) if number == 0 else self._both(None, row.values)), SIDES[number])

    def elapse(self, key: Key, state: Any, watermark: int | None, clock: int) -> tuple[list[Given], int]:
        made, used = interval_join.on_time(self._spec, state, watermark)
        return self._told(key, made), used

    def due(self, state: Any) -> int | None:
        return interval_join.due(self._spec, state)

    def _row(self, row: Travelling) -> Row:
        return Row(row.order[0], row.order, row.values, row.id or self.setting.cause(row))

    def _told(self, key: Key, made: list[interval_join.Joined]) -> list[Given]:
        told: list[Given] = []
        for one in made:
            values = self._both(one.left and one.left.args, one.right and one.right.args)
            row = self.made(key, one.time, one.cause, values)
            side = 0 if one.left is not None else 1
            if one.matched or self._spec.alone[side]:
                told.append(("rows", row))
            if not one.matched and self._spec.unmatched:
                told.append(("unmatched", row._replace(values=(*values, SIDES[side]))))
        return told


class Enriched(Meeting):
    """A stream's rows with what a table says for them. They stay the rows they were: same place, same id."""

    def __init__(self, step: Step, setting: Setting, node: declared.Enriched) -> None:
        table = row_of_table(node.table)
        super().__init__(step, setting, [row_of(list(node.on), node.of.columns), table])
        self._module: Any = as_of if node.as_of else current
        self._spec = step_of(node)[1]
        self._both = both(node)
        self._as_of = node.as_of

    def fresh(self) -> Any:
        return self._module.State()

    def judge(self, key: Key, state: Any, row: Travelling, number: int, before: int | None) -> tuple[str, list[Given]]:
        if number == 1:
            return self._learn(state, version_of(row), before), []
        if self._as_of:
            verdict, made = as_of.step(self._spec, state, _carried(row), before)
        else:
            verdict, made = current.step(self._spec, state, _carried(row))
        return verdict, self._told(made)

    def _learn(self, state: Any, version: Version, before: int | None) -> str:
        if self._as_of:
            return as_of.learn(self._spec, state, version)
        return current.learn(self._spec, state, version, before)

    def unkeyed(self, row: Travelling, number: int, before: int | None) -> tuple[str, list[Given]]:
        if self._as_of:
            verdict, made = as_of.unkeyed(self._spec, _carried(row), before)
            return verdict, self._told(made)
        return USED, self._told([Answered(_carried(row), None)])

    def elapse(self, key: Key, state: Any, watermark: int | None, clock: int) -> tuple[list[Given], int]:
        made, used = self._module.on_time(self._spec, state, watermark)
        return self._told(made), used

    def due(self, state: Any) -> int | None:
        due: int | None = self._module.due(self._spec, state)
        return due

    def _told(self, made: list[Answered]) -> list[Given]:
        told: list[Given] = []
        for row, values in made:
            (travelling,) = row.args
            told.append(("rows", travelling._replace(values=self._both(travelling.values, values))))
        return told


class LookedUp(Single):
    """A stream's rows with those of a static table; a key with a null in it finds none."""

    def __init__(self, step: Step, setting: Setting, node: declared.LookedUp) -> None:
        super().__init__(step, setting)
        key = [column.name for column in node.event.columns].index
        rows = [tuple(getattr(row, column.name) for column in node.event.columns) for row in node.rows]
        self._rows = {tuple(values[key(name)] for name in node.event.key): values for values in rows}
        self._key = row_of(list(node.on), node.of.columns)
        self._both = both(node)

    def take(self, rows: list[Travelling], moment: Moment) -> None:
        made = []
        for row in rows:
            try:
                found = self._rows.get(self._key(row.values))
            except DoesNotFit as misfit:
                self.bury(row, misfit.code, misfit.what)
            else:
                made.append(row._replace(values=self._both(row.values, found)))
        self.counts.used += len(made)
        self.give(made)


def _carried(row: Travelling) -> Row:
    """The row as the step sees it, with itself inside: it comes out as it went in."""
    return Row(row.order[0], row.order, (row,))


def both(node: declared.Joined | declared.Enriched | declared.LookedUp | changing.Settled) -> Both:
    """From the values of both rows, None where there is none, to the columns that come out."""
    if isinstance(node, declared.LookedUp):
        left, right = node.of.columns, node.event.columns
    else:
        left, right = (of.columns for of in (node.of.inputs if isinstance(node, changing.Settled) else node.inputs))
    columns = _named(node.names[0], left) + _named(node.names[1], right)
    nothing = ((None,) * len(left), (None,) * len(right))
    values = row_of([value for _, value in node.values], columns)
    return lambda one, other: values((nothing[0] if one is None else one) + (nothing[1] if other is None else other))


def _named(name: str, columns: Columns) -> Columns:
    return tuple(Column(f"{name}.{column.name}", column.type, column.nullable) for column in columns)


def version_of(row: Travelling) -> Version:
    """A table's row or tombstone as a version."""
    return Version(row.order, None if isinstance(row.values, Tombstone) else row.values)


def row_of_table(node: declared.ReadTable) -> Callable[[Any], Key]:
    """From a table's row or tombstone to its key."""
    names = [column.name for column in node.columns]
    places = [names.index(name) for name in node.event.key]
    return lambda values: values.key if isinstance(values, Tombstone) else tuple([values[at] for at in places])
