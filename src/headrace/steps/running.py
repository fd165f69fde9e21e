"""A running aggregate: rows enter at one end in order and leave at the other, and its value is known at any moment.

Where every aggregate can give a row back, it is removed. Else two stacks: rows enter `back`, which knows its total;
when `front` is empty, `back` is turned over into it, each entry with the total of itself and all rows after it. Every
row is merged twice in its life, however long the window is.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from headrace.steps.row import Row
from headrace.steps.tally import Tally


class Running:
    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._rows: deque[Row] = deque()
        self._total = tally.empty()  # of all rows, if they can be removed; else of the rows in `back`
        self._front: list[list[Any]] = []  # totals; the oldest row's is the last
        self.rows = 0

    def enter(self, row: Row) -> None:
        self._rows.append(row)
        self._tally.add(self._total, row)
        self.rows += 1

    def leave(self, up_to: int) -> None:
        """Rows of this time or older leave."""
        while self._rows and self._rows[0].time <= up_to:
            if self._tally.removable:
                self._tally.remove(self._total, self._rows[0])
            else:
                if not self._front:
                    self._turn_over()
                self._front.pop()
            self._rows.popleft()
            self.rows -= 1

    def values(self) -> tuple[Any, ...]:
        if not self._front:
            return self._tally.values(self._total)
        merged = self._tally.empty()
        self._tally.merge(merged, self._front[-1])
        self._tally.merge(merged, self._total)
        return self._tally.values(merged)

    def _turn_over(self) -> None:
        for row in reversed(self._rows):
            total = self._tally.empty()
            self._tally.add(total, row)
            if self._front:
                self._tally.merge(total, self._front[-1])
            self._front.append(total)
        self._total = self._tally.empty()
