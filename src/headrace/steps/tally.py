"""A tally: the aggregates of one window side by side, and which rows they cannot take."""

from __future__ import annotations

import math
from typing import Any

from headrace.steps.aggregate import ExactSum, Spec, algebra
from headrace.steps.row import NAN, OVERFLOW, Row

LIMIT = 1 << 127  # sums are kept in 128 bits


class Tally:
    """A list of states, one for each aggregate."""

    def __init__(self, specs: tuple[Spec, ...]) -> None:
        self.algebras = tuple(algebra(spec) for spec in specs)
        self.removable = all(a.removable for a in self.algebras)
        self._floats = tuple(i for i, spec in enumerate(specs) if spec.of == "float")
        self._ranks = any(spec.kind == "top_rows" for spec in specs)  # then it is the only one
        self._sums = tuple(i for i, a in enumerate(self.algebras) if isinstance(a, ExactSum))

    def empty(self) -> list[Any]:
        return [a.empty() for a in self.algebras]

    def refuses(self, states: list[Any] | None, row: Row) -> str:
        """Why the row cannot be counted here, or "": asked before `add`, so that a refused row leaves no trace."""
        for i in self._floats:
            value = row.args[i][0] if self._ranks else row.args[i]
            if value is not None and not math.isfinite(value):
                return NAN
        for i in self._sums:
            value = row.args[i]
            if value is not None:
                total = value if states is None else states[i][1] + value
                if not -LIMIT <= total < LIMIT:
                    return OVERFLOW
        return ""

    def add(self, states: list[Any], row: Row) -> None:
        for i, a in enumerate(self.algebras):
            states[i] = a.add(states[i], row.args[i], row.order)

    def merge(self, into: list[Any], other: list[Any]) -> None:
        for i, a in enumerate(self.algebras):
            into[i] = a.merge(into[i], other[i])

    def remove(self, states: list[Any], row: Row) -> None:
        for i, a in enumerate(self.algebras):
            states[i] = a.remove(states[i], row.args[i])

    def values(self, states: list[Any]) -> tuple[Any, ...]:
        return tuple(a.value(state) for a, state in zip(self.algebras, states, strict=True))
