"""Steps with state per key: windows, dedup and changed, over the state machines of `steps/`."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any

from headrace.base.clock import from_micros
from headrace.base.errors import DoesNotFit
from headrace.expr import by_index, compile
from headrace.expr.types import Columns
from headrace.model import changing, declared
from headrace.model.naming import refs
from headrace.model.window import Sliding
from headrace.plan.plan import Step
from headrace.reference.batch import Dead, Travelling
from headrace.reference.operator import Moment, Setting, Single
from headrace.reference.stateful import Given, Stateful
from headrace.reference.stateless import Evaluate, row_of
from headrace.reference.timers import Key
from headrace.steps import plain
from headrace.steps.emission import Passes
from headrace.steps.row import DUPLICATE, END, FILTERED, HELD, LATE, MILLI, USED, Result, Row
from headrace.steps.spec import step_of

_order = itemgetter(0)


class Keyed(Stateful, Single):
    """Steps of one input that every row of it passes, waits in, or is left out by."""

    def __init__(
        self, step: Step, setting: Setting, node: declared.Aggregated | declared.Dedup | declared.Changed
    ) -> None:
        super().__init__(step, setting)
        module, self._spec = step_of(node)
        self._new, self._step, self._on_time, self._due = module.State, module.step, module.on_time, module.due
        key = node.id if isinstance(node, declared.Dedup) else node.keys
        self._key = row_of([value for _, value in key], node.of.columns)
        self._args = _arguments_of(node)
        self._by_clock = step.by_clock

    def take(self, rows: list[Travelling], moment: Moment) -> None:
        before, watermark = self.times(moment)
        touched = self._apply(sorted(rows, key=_order), before, moment) if rows else {}
        self.pass_time(touched, watermark, moment.clock)

    def times(self, moment: Moment) -> tuple[int | None, int | None]:
        """By the clock, if the step goes by it (rule W7)."""
        if self._by_clock:
            return moment.clock, END if moment.watermark == END else moment.clock
        return super().times(moment)

    def _apply(self, rows: list[Travelling], before: int | None, moment: Moment) -> dict[Key, int]:
        """Rows in order R2 under W(k-1); gives the keys they touched, with what each held before."""
        touched: dict[Key, int] = {}
        late: list[tuple[Travelling, Any, Row]] = []
        used: list[Travelling] = []
        duplicates: list[Travelling] = []
        states, step, spec, new = self.states, self._step, self._spec, self._new
        key_of, args_of, by_clock, wants_cause = self._key, self._args, self._by_clock, self._wants_cause
        for row in rows:
            try:
                key = key_of(row.values)
                args = args_of(row.values)
            except DoesNotFit as misfit:
                self.bury(row, misfit.code, misfit.what)
                continue
            state = states.get(key)
            if state is None:
                state = states[key] = new()
            if key not in touched:
                touched[key] = state.held
            order = (moment.clock * MILLI, *row.order[1:]) if by_clock else row.order
            seen = Row(order[0], order, args, (row.id or self.setting.cause(row)) if wants_cause else "")
            verdict = step(spec, state, seen, before)
            if verdict is HELD:
                continue
            if verdict is USED:
                used.append(row)
            elif verdict is LATE:
                late.append((row, state, seen))
            elif verdict is DUPLICATE:
                duplicates.append(row)
            elif verdict is FILTERED:
                self.counts.filtered += 1
            else:
                self.bury(row, verdict)
        self.counts.used += len(used)
        self.counts.duplicates += len(duplicates)
        self.give(used)
        self.put_aside(duplicates, "duplicates")
        if late:
            self._try_again(late, before)
        return touched

    def _try_again(self, late: list[tuple[Travelling, Any, Row]], before: int | None) -> None:
        """Late rows once more, last first; what is still late is set aside with the watermark it met (rule W4)."""
        met = (from_micros((before or 0) * MILLI),)
        lost = []
        for row, state, seen in reversed(late):
            verdict = self._step(self._spec, state, seen, before)
            if verdict is LATE:
                lost.append(row._replace(values=row.values + met))
            elif verdict is not HELD:
                self.bury(row, verdict)
        self.counts.late += len(lost)
        self.put_aside(lost[::-1], "late")

    def elapse(self, key: Key, state: Any, watermark: int | None, clock: int) -> tuple[list[Given], int]:
        results, used = self._on_time(self._spec, state, watermark, clock, self._passes(key))
        return [("rows", row) for result in results for row in self._told(key, result)], used

    def due(self, state: Any) -> int | None:
        due: int | None = self._due(self._spec, state)
        return due

    @property
    def _wants_cause(self) -> bool:
        return False

    def _passes(self, key: Key) -> Passes | None:
        return None

    def _told(self, key: Key, result: Result) -> list[Travelling]:
        raise AssertionError(f"{self.name} gives rows of its own")  # only windows do


class Dedup(Keyed):
    """Rows pass or are duplicates; time only makes it forget."""


class Changed(Keyed):
    """Rows pass or are filtered; time only makes it forget."""


class Windowed(Keyed):
    """Aggregates per key and window."""

    def __init__(self, step: Step, setting: Setting, node: declared.Aggregated) -> None:
        super().__init__(step, setting, node)
        self._per_row = isinstance(node.window, Sliding)
        self._ranks = bool(node.ranked)
        self._back = [None if node.ranked else plain.back(value.type) for value in node.values]
        self._having = None if node.having is None else compile(node.having, by_index(node.columns))

    @property
    def _wants_cause(self) -> bool:
        return self._per_row

    def _passes(self, key: Key) -> Passes | None:
        having = self._having
        if having is None:
            return None

        def passes(result: Result) -> bool:
            values = self._values(key, result)
            try:
                return having(values) is True
            except DoesNotFit as misfit:
                told = Dead(self.name, result.cause, self.name, misfit.code, misfit.what, values)
                self.setting.dead.append(told)
                return False

        return passes

    def _told(self, key: Key, result: Result) -> list[Travelling]:
        """A result's rows: one, or one for each rank."""
        values = self._values(key, result)
        if not self._ranks:
            return [self.made(key, result.time, result.cause, values, result.revision)]
        *named, rows = values
        return [
            self.made(key, result.time, f"{result.cause}/{rank}", (*named, rank, *row), result.revision)
            for rank, row in enumerate(rows, 1)
        ]

    def _values(self, key: Key, result: Result) -> tuple[Any, ...]:
        """The columns of rule F2."""
        told = plain.each(self._back, result.values)
        start = None if result.start is None else from_micros(result.start)
        end = None if result.end is None else from_micros(result.end)
        return (*key, start, end, result.kind, result.revision, *told)


def _columns_of(names: tuple[str, ...], columns: Columns) -> Callable[[Any], tuple[Any, ...]]:
    """One function from a row's values to those of these columns."""
    return row_of([value for _, value in refs(names, columns)], columns)


def _arguments_of(node: declared.Aggregated | declared.Dedup | declared.Changed) -> Evaluate:
    """What a step is told of a row beside its place."""
    if isinstance(node, declared.Aggregated):
        return arguments(node)
    if isinstance(node, declared.Changed):
        return _columns_of(node.values, node.of.columns)
    return lambda values: ()


def arguments(node: declared.Aggregated | changing.Grouped) -> Evaluate:
    """One function from a row's values to the plain arguments of all aggregates."""
    if isinstance(node, declared.Aggregated) and node.ranked:
        return _ranked(node)
    nothing = (None,) * len(node.values)
    if all(value.argument is None for value in node.values):
        return lambda values: nothing
    read = by_index(node.of.columns)
    functions = [_argument(value.argument, read) for value in node.values]
    return lambda values: tuple([function(values) for function in functions])


def _ranked(node: declared.Aggregated) -> Evaluate:
    """The one argument of top rows: what they are ranked by, and the row."""
    read = by_index(node.of.columns)
    by, row = _argument(node.values[0].argument, read), _columns_of(tuple(c.name for c in node.ranked), node.of.columns)
    return lambda values: ((by(values), row(values)),)


def _argument(expression: Any, read: Any) -> Evaluate:
    if expression is None:
        return lambda values: None
    get, convert = compile(expression, read), plain.into(expression.type)
    if convert is None:
        return get
    return lambda values: None if (value := get(values)) is None else convert(value)
