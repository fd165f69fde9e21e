"""Aggregates that can give every value back, for groups over a table whose rows change and go (rules J5, D5).

Counts and exact sums subtract. Sums of floats are kept exactly, as a whole number of a power of two, because what
rounding loses would stay when its cause is long retracted. min, max, top, distinct and quantile are read off the
multiset of the group's values: exact, at the price of an entry for each different value, which a kernel may keep in
chunks by value.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Any, Protocol

from headrace.steps import aggregate
from headrace.steps.aggregate import Spec
from headrace.steps.ddsketch import ROUNDING
from headrace.steps.row import Order


class Retractable(Protocol):
    def empty(self) -> Any: ...
    def add(self, state: Any, value: Any, order: Order) -> Any: ...
    def remove(self, state: Any, value: Any) -> Any: ...
    def value(self, state: Any) -> Any: ...


ExactFloat = tuple[int, int, int]  # how many, units, exponent: the total is units * 2^exponent


class FloatSum:
    """State: (how many, units, exponent), without loss, units odd or 0; values given back leave no trace."""

    def empty(self) -> ExactFloat:
        return (0, 0, 0)

    def add(self, state: ExactFloat, value: float | None, order: Order) -> ExactFloat:
        return state if value is None else _plus(state, value, 1)

    def remove(self, state: ExactFloat, value: float | None) -> ExactFloat:
        return state if value is None else _plus(state, -value, -1)

    def value(self, state: ExactFloat) -> float | None:
        """The float nearest to the total; null if there is none."""
        count, units, exponent = state
        if count == 0:
            return None
        try:
            return float(units << exponent) if exponent >= 0 else units / (1 << -exponent)
        except OverflowError:
            return None


class FloatAvg(FloatSum):
    def value(self, state: ExactFloat) -> float | None:
        total = super().value(state)
        return None if total is None else total / float(state[0])


@dataclass(slots=True)
class Multiset:
    """Different values in their order, and how often each is there."""

    values: list[Any] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)


class _Counted:
    """Reads its value off a multiset. Nulls are left out."""

    def empty(self) -> Multiset:
        return Multiset()

    def add(self, state: Multiset, value: Any, order: Order) -> Multiset:
        if value is None:
            return state
        if isinstance(value, float):
            value += 0.0  # makes 0.0 of -0.0: they are one value
        at = bisect_left(state.values, value)
        if at < len(state.values) and state.values[at] == value:
            state.counts[at] += 1
        else:
            state.values.insert(at, value)
            state.counts.insert(at, 1)
        return state

    def remove(self, state: Multiset, value: Any) -> Multiset:
        if value is None:
            return state
        at = bisect_left(state.values, value)
        state.counts[at] -= 1
        if state.counts[at] == 0:
            del state.values[at]
            del state.counts[at]
        return state


class Least(_Counted):
    def value(self, state: Multiset) -> Any:
        return state.values[0] if state.values else None


class Greatest(_Counted):
    def value(self, state: Multiset) -> Any:
        return state.values[-1] if state.values else None


class Distinct(_Counted):
    def value(self, state: Multiset) -> int:
        return len(state.values)


class Top(_Counted):
    """The n greatest values, each as often as it is there."""

    def __init__(self, n: int) -> None:
        self.n = n

    def value(self, state: Multiset) -> list[Any]:
        out: list[Any] = []
        for value, count in zip(reversed(state.values), reversed(state.counts), strict=True):
            out += [value] * min(count, self.n - len(out))
            if len(out) == self.n:
                break
        return out


class Quantile(_Counted):
    """The nearest rank, as ddsketch.py defines it, but exact."""

    def __init__(self, q: float, scale: int) -> None:
        self.q = q
        self.unit = float(10**scale)

    def value(self, state: Multiset) -> float | None:
        rank = max(0, math.ceil(self.q * sum(state.counts) - ROUNDING) - 1)
        for value, count in zip(state.values, state.counts, strict=True):
            rank -= count
            if rank < 0:
                return float(value) / self.unit
        return None


def retractable(spec: Spec) -> Retractable:
    """The algebra of one aggregate over a changing table; its kind is none of UNRETRACTABLE."""
    match spec.kind:
        case "sum" if spec.of == "float":
            return FloatSum()
        case "avg" if spec.of == "float":
            return FloatAvg()
        case "count" | "sum" | "avg":
            return aggregate.algebra(spec)
        case "min":
            return Least()
        case "max":
            return Greatest()
        case "distinct":
            return Distinct()
        case "top":
            return Top(spec.n)
        case "quantile":
            return Quantile(spec.q, spec.scale)
    raise AssertionError(f"{spec.kind} is refused over a changing table")


def _plus(state: ExactFloat, value: float, rows: int) -> ExactFloat:
    count, units, exponent = state
    more, below = value.as_integer_ratio()
    own = 1 - below.bit_length()  # value = more * 2^own
    if own < exponent:
        units <<= exponent - own
        exponent = own
    units += more << (own - exponent)
    if units == 0:
        return (count + rows, 0, 0)
    zeros = (units & -units).bit_length() - 1  # the shortest form: the state depends only on the values it holds
    return (count + rows, units >> zeros, exponent + zeros)
