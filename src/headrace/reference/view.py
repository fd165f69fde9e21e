"""Tables and views: changes walk from step to step, each a row whose values are a Change (rules J5, J6).

As in a kernel, what a step by another key is handed are messages made of a change on its way in: links for a join,
answers for what settles, deltas for a group. These are what a step counts (rule D3).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.base.clock import from_micros
from headrace.base.errors import DoesNotFit
from headrace.base.keys import key_text
from headrace.expr import by_index, compile
from headrace.expr.types import Columns
from headrace.model import changing
from headrace.plan.plan import Step
from headrace.reference.batch import Travelling
from headrace.reference.joined import both, row_of_table, version_of
from headrace.reference.keyed import arguments
from headrace.reference.meeting import KeyOf, Meeting
from headrace.reference.operator import Moment, Setting, Single
from headrace.reference.stateful import Given
from headrace.reference.stateless import row_of
from headrace.reference.timers import Key
from headrace.steps import changelog, plain, settle, table, view_join
from headrace.steps.change import Change, reshaped
from headrace.steps.changelog import Delta
from headrace.steps.spec import step_of
from headrace.steps.version import Values
from headrace.steps.view_join import Answer, Link

TextOf = Callable[[Values], str | None]
"""From a row to the text of a key of it, None where a part is null."""


class _Telling(Meeting):
    """One net change per key and batch."""

    def __init__(self, step: Step, setting: Setting, node: Any, keys: list[KeyOf]) -> None:
        super().__init__(step, setting, keys)
        self._module, self._spec = step_of(node)

    def fresh(self) -> Any:
        return self._module.State()

    def elapse(self, key: Key, state: Any, watermark: int | None, clock: int) -> tuple[list[Given], int]:
        changes, used = self._module.on_time(self._spec, state, watermark)
        return [("rows", self.made(key, c.version, str(c.version), self.seen(key, c))) for c in changes], used

    def due(self, state: Any) -> int | None:
        due: int | None = self._module.due(self._spec, state)
        return due

    def seen(self, key: Key, change: Change) -> Change:
        return change


class Versions(_Telling):
    """A table's rows as they change."""

    def __init__(self, step: Step, setting: Setting, node: changing.Versions) -> None:
        super().__init__(step, setting, node, [row_of_table(node.of)])

    def judge(self, key: Key, state: Any, row: Travelling, number: int, before: int | None) -> tuple[str, list[Given]]:
        return table.step(self._spec, state, version_of(row)), []


class Reshaped(Single):
    """A filter or a projection. A row for which it has no value that fits is a dead letter when it comes, and is not
    there."""

    def __init__(self, step: Step, setting: Setting, node: changing.ViewFilter | changing.ViewProject) -> None:
        super().__init__(step, setting)
        self._see = _filter(node) if isinstance(node, changing.ViewFilter) else _projection(node)

    def take(self, rows: list[Travelling], moment: Moment) -> None:
        for row in rows:
            change = _change(row)
            before, _ = self._seen(change.before)
            after, broken = self._seen(change.after)
            seen = reshaped(change, before, after)
            if broken is not None:
                self.bury(row._replace(values=change.after or ()), broken.code, broken.what)
            elif seen is None:
                self.counts.filtered += 1
            else:
                self.counts.used += 1
            if seen is not None:
                self.give([row._replace(values=seen)])

    def _seen(self, values: Values | None) -> tuple[Values | None, DoesNotFit | None]:
        try:
            return (None if values is None else self._see(values)), None
        except DoesNotFit as misfit:
            return None, misfit


class ViewJoin(Meeting):
    """By foreign key: the right row, and the left rows that point to it. Gives answers."""

    def __init__(self, step: Step, setting: Setting, node: changing.ViewJoin) -> None:
        super().__init__(step, setting, [lambda message: (message[0],), _by(node.right_key, node.right.columns)])
        self._spec: view_join.Spec = step_of(node)[1]
        self._links = _links(node, self._spec)

    def meet(self, inputs: list[list[Travelling]], moment: Moment) -> None:
        left, right = inputs
        links = [row._replace(values=told) for row in left for told in self._links(_change(row))[0]]
        self.counts.received += len(links) - len(left)
        super().meet([links, right], moment)

    def fresh(self) -> view_join.State:
        return view_join.State()

    def judge(self, key: Key, state: Any, row: Travelling, number: int, before: int | None) -> tuple[str, list[Given]]:
        if number == 0:
            link: Link = row.values[1]
            verdict, answers = view_join.step(self._spec, state, link)
        else:
            verdict, answers = view_join.learn(self._spec, state, _change(row))
        causes = (f"{left}/{right}" for _, (left, right), _ in answers)
        made = [self.made(key, max(a.cause), cause, a) for a, cause in zip(answers, causes, strict=True)]
        return verdict, [("rows", row) for row in made]

    def elapse(self, key: Key, state: Any, watermark: int | None, clock: int) -> tuple[list[Given], int]:
        return [], 0

    def due(self, state: Any) -> int | None:
        return None


class Settled(_Telling):
    """By output key: of a batch's answers the last one counts."""

    def __init__(self, step: Step, setting: Setting, node: changing.Settled) -> None:
        super().__init__(step, setting, node, [lambda answer: (answer.key,)] * 2)
        self._links = _links(node.of, step_of(node.of)[1])
        self._width, self._both = len(node.of.left.columns), both(node)

    def meet(self, inputs: list[list[Travelling]], moment: Moment) -> None:
        answers, left = inputs
        at_once = [row._replace(values=answer) for row in left for answer in self._links(_change(row))[1]]
        self.counts.received += len(at_once) - len(left)
        super().meet([answers, at_once], moment)

    def judge(self, key: Key, state: Any, row: Travelling, number: int, before: int | None) -> tuple[str, list[Given]]:
        answer = Answer(*row.values)
        if answer.values is not None:
            left, right = answer.values[: self._width], answer.values[self._width :]
            answer = answer._replace(values=self._both(left, right))
        return settle.step(self._spec, state, answer), []


class Grouped(_Telling):
    """By group: aggregates of the rows that are in it now."""

    def __init__(self, step: Step, setting: Setting, node: changing.Grouped) -> None:
        super().__init__(step, setting, node, [lambda message: message[0]])
        self._group, self._args = row_of([value for _, value in node.keys], node.of.columns), arguments(node)
        self._back = [plain.back(value.type) for value in node.values]

    def meet(self, inputs: list[list[Travelling]], moment: Moment) -> None:
        (rows,) = inputs
        deltas = [row._replace(values=told) for row in rows for told in self._deltas(_change(row))]
        self.counts.received += len(deltas) - len(rows)
        super().meet([deltas], moment)

    def _deltas(self, change: Change) -> list[tuple[Any, Delta]]:
        return changelog.deltas(self._entry(change.before), self._entry(change.after), change.version)

    def _entry(self, values: Values | None) -> tuple[Key, tuple[Any, ...]] | None:
        """A row's group and arguments; None where there is no row, or a null among the group's columns."""
        if values is None or None in (group := self._group(values)):
            return None
        return group, self._args(values)

    def judge(self, key: Key, state: Any, row: Travelling, number: int, before: int | None) -> tuple[str, list[Given]]:
        delta: Delta = row.values[1]
        return changelog.step(self._spec, state, delta), []

    def seen(self, key: Key, change: Change) -> Change:
        return change._replace(before=self._row(key, change.before), after=self._row(key, change.after))

    def _row(self, key: Key, values: Values | None) -> Values | None:
        if values is None:
            return None
        return (*key, *plain.each(self._back, values))


class ChangeRows(Single):
    """Changes as rows of a stream."""

    def __init__(self, step: Step, setting: Setting, node: changing.ChangeRows) -> None:
        super().__init__(step, setting)
        self._key = row_of([value for _, value in node.key], node.of.columns)
        names = [column.name for column in node.of.columns]
        self._others = [names.index(column.name) for column in node.others]

    def take(self, rows: list[Travelling], moment: Moment) -> None:
        self.counts.used += len(rows)
        self.give([row._replace(values=self._flat(_change(row))) for row in rows])

    def _flat(self, change: Change) -> Values:
        before, after = change.before, change.after
        key = self._key(before if after is None else after)
        sides = [None if values is None else values[at] for values in (before, after) for at in self._others]
        return (change.op, *key, *sides, from_micros(change.version))


def _change(row: Travelling) -> Change:
    return Change(*row.values)


def _filter(node: changing.ViewFilter) -> Callable[[Values], Values | None]:
    condition = compile(node.condition, by_index(node.of.columns))
    return lambda values: values if condition(values) else None


def _projection(node: changing.ViewProject) -> Callable[[Values], Values | None]:
    return row_of([value for _, value in node.values], node.of.columns)


def _text(expressions: list[Any], columns: Columns) -> TextOf:
    key = row_of(expressions, columns)
    return lambda values: None if None in (found := key(values)) else key_text(found)


def _by(key: changing.Named, columns: Columns) -> KeyOf:
    """From a change to the text of its key."""
    text = _text([value for _, value in key], columns)
    return lambda change: (text(change.before if change.after is None else change.after),)


def _links(
    node: changing.ViewJoin, spec: view_join.Spec
) -> Callable[[Change], tuple[list[tuple[str, Link]], list[Answer]]]:
    """From a change of the left: what to tell which foreign key, and what to answer at once."""
    key, foreign = _by(node.key, node.left.columns), _text(list(node.on), node.left.columns)

    def links(change: Change) -> tuple[list[tuple[str, Link]], list[Answer]]:
        old, new = (None if values is None else foreign(values) for values in (change.before, change.after))
        return view_join.links(spec, str(key(change)[0]), change, old, new)

    return links
