"""The best rows of a window: ranked by a value, of equal ones the first in order R2."""

from __future__ import annotations

from typing import Any

from headrace.steps.algebra import Growing
from headrace.steps.row import Order

Ranked = tuple[Any, Order, Any]  # what it is ranked by, its row's place, its row


class TopRows(Growing):
    """The n rows of the greatest values, of equal ones the first in order R2. Its argument is (value, row).
    State: a list of (value, order, row), greatest first."""

    def __init__(self, n: int) -> None:
        self.n = n

    def empty(self) -> list[Ranked]:
        return []

    def add(self, state: list[Ranked], value: tuple[Any, Any], order: Order) -> list[Ranked]:
        by, row = value
        return state if by is None else self._put(state, (by, order, row))

    def merge(self, into: list[Ranked], other: list[Ranked]) -> list[Ranked]:
        for entry in other:
            self._put(into, entry)
        return into

    def value(self, state: list[Ranked]) -> list[Any]:
        return [row for _, _, row in state]

    def _put(self, state: list[Ranked], entry: Ranked) -> list[Ranked]:
        at = len(state)
        while at > 0 and _outranks(entry, state[at - 1]):
            at -= 1
        state.insert(at, entry)
        del state[self.n :]
        return state


def _outranks(one: Ranked, other: Ranked) -> bool:
    return bool(one[0] > other[0] or (one[0] == other[0] and one[1] < other[1]))
