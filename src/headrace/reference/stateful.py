"""State per key and the time that moves it: what every step with state shares."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from headrace.base.duration import millis
from headrace.base.ids import stable_id
from headrace.base.keys import key_text
from headrace.plan.plan import Step
from headrace.reference.batch import DERIVED, Travelling
from headrace.reference.operator import Moment, Operator, Setting
from headrace.reference.timers import Key, Timers

Given = tuple[str, Travelling]
"""A row and the port it leaves by."""


class Stateful(Operator):
    """One state per key. A step says what time brings to one (`elapse`), and when it wants to be asked (`due`)."""

    def __init__(self, step: Step, setting: Setting) -> None:
        super().__init__(step, setting)
        self.states: dict[Key, Any] = {}
        self._hold = millis(step.hold)
        self._timers = Timers()

    def times(self, moment: Moment) -> tuple[int | None, int | None]:
        """W(k-1) and W(k) as this step meets them: less its hold (rule T6)."""
        before, watermark, hold = moment.before, moment.watermark, self._hold
        return None if before is None else before - hold, None if watermark is None else watermark - hold

    def pass_time(self, touched: Mapping[Key, int], watermark: int | None, clock: int) -> None:
        """After a batch's rows: to the keys they touched, with what each held before, and to those whose time is up."""
        for key, held in touched.items():
            self._move(key, held, watermark, clock)
        for key in self._timers.reached(watermark):
            self._move(key, self.states[key].held, watermark, clock)

    def _move(self, key: Key, held: int, watermark: int | None, clock: int) -> None:
        state = self.states[key]
        made, used = self.elapse(key, state, watermark, clock)
        self.counts.used += used
        self.counts.held += state.held - held
        self.send(made)
        if state.empty:
            del self.states[key]
        self._timers.set(key, None if state.empty else self.due(state))

    def send(self, made: list[Given]) -> None:
        for port, row in made:
            if port == "rows":
                self.give([row])
            else:
                self.put_aside([row], port)

    def made(self, key: Key, time: int, cause: str, values: tuple[Any, ...], revision: int = 0) -> Travelling:
        """A row that this step made (rule D2)."""
        plan = self.setting.plan
        text = "" if None in key else key_text(key)
        id = stable_id(plan.app, plan.version, self.name, text, cause)
        return Travelling((time, DERIVED + self.step.ordinal, 0, revision, id), id, cause, values)

    @abstractmethod
    def elapse(self, key: Key, state: Any, watermark: int | None, clock: int) -> tuple[list[Given], int]:
        """What time brings, and how many held rows it used up."""

    @abstractmethod
    def due(self, state: Any) -> int | None:
        """The watermark that will bring something, ms."""
