"""Steps that give rows: those of several inputs meet by key; what they make comes out at once or by time."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from headrace.base.clock import from_micros
from headrace.base.errors import DoesNotFit
from headrace.plan.plan import Step
from headrace.reference.batch import Travelling
from headrace.reference.operator import Moment, Setting
from headrace.reference.stateful import Given, Stateful
from headrace.reference.timers import Key
from headrace.steps.row import DUPLICATE, HELD, LATE, MILLI, USED, Order

KeyOf = Callable[[Any], Key]


class Meeting(Stateful):
    """`keys`: from the values of an input's row to its key. A step says what becomes of a row (`judge`), and of one
    whose key is null (`unkeyed`)."""

    def __init__(self, step: Step, setting: Setting, keys: Sequence[KeyOf]) -> None:
        super().__init__(step, setting)
        self._keys = keys

    def meet(self, inputs: list[list[Travelling]], moment: Moment) -> None:
        before, watermark = self.times(moment)
        rows = [(row.order, number, row) for number, rows in enumerate(inputs) for row in rows]
        touched: dict[Key, int] = {}
        for _, number, row in sorted(rows, key=self._in_turn):
            try:
                key = self._keys[number](row.values)
                if None in key:
                    judged = self.unkeyed(row, number, before)
                else:
                    state = self.states.get(key) or self.states.setdefault(key, self.fresh())
                    touched.setdefault(key, state.held)
                    judged = self.judge(key, state, row, number, before)
            except DoesNotFit as misfit:
                self.bury(row, misfit.code, misfit.what)
            else:
                self._count(row, number, before, *judged)
        self.pass_time(touched, watermark, moment.clock)

    def _count(self, row: Travelling, number: int, before: int | None, verdict: str, made: list[Given]) -> None:
        if verdict is USED:
            self.counts.used += 1
        elif verdict is LATE:
            self.counts.late += 1
            late = self.late(row, number)
            if "late" in self.readers and late is not None:
                met = from_micros((before or 0) * MILLI)
                self.put_aside([row._replace(values=(*late, met))], "late")
        elif verdict is DUPLICATE:
            self.counts.duplicates += 1
            self.put_aside([row], "duplicates")
        elif verdict is not HELD:
            self.bury(row, verdict)
        self.send(made)

    @abstractmethod
    def fresh(self) -> Any:
        """The state of a key that has none."""

    @abstractmethod
    def judge(self, key: Key, state: Any, row: Travelling, number: int, before: int | None) -> tuple[str, list[Given]]:
        """What becomes of a row of the n-th input, and what it makes at once."""

    def unkeyed(self, row: Travelling, number: int, before: int | None) -> tuple[str, list[Given]]:
        raise AssertionError(f"{self.name} has no rows without key")

    def late(self, row: Travelling, number: int) -> tuple[Any, ...] | None:
        """The columns of `.late` before the watermark; None: it is counted, and that is all."""
        return row.values

    def turn(self, number: int) -> int:
        """Among rows of one time, those of the least turn go first."""
        return 0

    def _in_turn(self, entering: tuple[Order, int, Travelling]) -> tuple[int, int, Order, int]:
        """Order R2, those of one place by input."""
        order, number, _ = entering
        return order[0], self.turn(number), order, number
