"""What an aggregate is: empty, add, merge, value, and remove where it is possible (rule D5)."""

from __future__ import annotations

from typing import Any, Protocol

from headrace.steps.row import Order


class Algebra(Protocol):
    removable: bool

    def empty(self) -> Any: ...
    def add(self, state: Any, value: Any, order: Order) -> Any: ...
    def merge(self, into: Any, other: Any) -> Any: ...
    def remove(self, state: Any, value: Any) -> Any: ...
    def value(self, state: Any) -> Any: ...


class Growing:
    """An algebra that cannot give a value back: a window that slides over it merges again instead."""

    removable = False

    def remove(self, state: Any, value: Any) -> Any:
        raise AssertionError("it is not removable")
