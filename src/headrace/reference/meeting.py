"""Steps that give rows: those of several inputs meet by key; what they make comes out at once or by time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

from headrace.base.clock import from_micros
from headrace.base.duration import millis
from headrace.base.errors import DoesNotFit
from headrace.base.ids import stable_id
from headrace.base.keys import key_text
from headrace.plan.plan import Step
from headrace.reference.batch import DERIVED, Travelling
from headrace.reference.operator import Moment, Operator, Setting
from headrace.reference.timers import Key, Timers
from headrace.steps.row import HELD, LATE, MILLI, USED

KeyOf = Callable[[Any], Key]
Given = tuple[str, Travelling]
"""A row and the port it leaves by."""

_place = itemgetter(0, 1)


class Meeting(Operator):
    """One state per key. `keys`: from the values of an input's row to its key. A step says what becomes of a row
    (`judge`), of one whose key is null (`unkeyed`), and what time brings (`elapse`, `due`)."""

    def __init__(self, step: Step, setting: Setting, keys: Sequence[KeyOf]) -> None:
        super().__init__(step, setting)
        self._keys = keys
        self._hold = millis(step.hold)
        self._states: dict[Key, Any] = {}
        self._timers = Timers()

    def meet(self, inputs: list[list[Travelling]], moment: Moment) -> None:
        before = None if moment.before is None else moment.before - self._hold
        watermark = None if moment.watermark is None else moment.watermark - self._hold
        rows = [(row.order, number, row) for number, rows in enumerate(inputs) for row in rows]
        touched: dict[Key, int] = {}
        for _, number, row in sorted(rows, key=_place):
            try:
                key = self._keys[number](row.values)
                if None in key:
                    judged = self.unkeyed(row, number, before)
                else:
                    state = self._states.get(key) or self._states.setdefault(key, self.fresh())
                    touched.setdefault(key, state.held)
                    judged = self.judge(key, state, row, number, before)
            except DoesNotFit as misfit:
                self.bury(row, misfit.code, misfit.what)
            else:
                self._count(row, number, before, *judged)
        for key, held in touched.items():
            self._move_time(key, held, watermark, moment.clock)
        for key in self._timers.reached(watermark):
            self._move_time(key, self._states[key].held, watermark, moment.clock)

    def _count(self, row: Travelling, number: int, before: int | None, verdict: str, made: list[Given]) -> None:
        if verdict is USED:
            self.counts.used += 1
        elif verdict is LATE:
            self.counts.late += 1
            if "late" in self.readers:
                met = from_micros((before or 0) * MILLI)
                self.put_aside([row._replace(values=(*self.late(row, number), met))], "late")
        elif verdict is not HELD:
            self.bury(row, verdict)
        self._give(made)

    def _move_time(self, key: Key, held: int, watermark: int | None, clock: int) -> None:
        state = self._states[key]
        made, used = self.elapse(key, state, watermark, clock)
        self.counts.used += used
        self.counts.held += state.held - held
        self._give(made)
        if state.empty:
            del self._states[key]
        self._timers.set(key, None if state.empty else self.due(state))

    def _give(self, made: list[Given]) -> None:
        for port, row in made:
            if port == "rows":
                self.give([row])
            else:
                self.put_aside([row], port)

    def made(self, key: Key, time: int, cause: str, values: tuple[Any, ...]) -> Travelling:
        """A row that this step made (rule D2)."""
        plan = self.setting.plan
        text = "" if None in key else key_text(key)
        id = stable_id(plan.app, plan.version, self.name, text, cause)
        return Travelling((time, DERIVED + self.step.ordinal, 0, 0, id), id, cause, values)

    def fresh(self) -> Any:
        raise NotImplementedError

    def judge(self, key: Key, state: Any, row: Travelling, number: int, before: int | None) -> tuple[str, list[Given]]:
        """What becomes of a row of the n-th input, and what it makes at once."""
        raise NotImplementedError

    def unkeyed(self, row: Travelling, number: int, before: int | None) -> tuple[str, list[Given]]:
        raise NotImplementedError

    def late(self, row: Travelling, number: int) -> tuple[Any, ...]:
        """The columns of `.late` before the watermark."""
        return row.values

    def elapse(self, key: Key, state: Any, watermark: int | None, clock: int) -> tuple[list[Given], int]:
        """What time brings, and how many held rows it used up."""
        raise NotImplementedError

    def due(self, state: Any) -> int | None:
        raise NotImplementedError
