"""Aggregates as small algebras (algebra.py).

States are plain values. `add` and `merge` give the new state back and may change the first one in place, never the
second. Values are plain (plain.py): decimals as whole units of their scale, times as micros.
Nulls are left out, but for `first` and `last`, which tell the value of a row as it is.
"""

from __future__ import annotations

import math
import struct
from bisect import insort
from dataclasses import asdict, dataclass
from typing import Any

import msgspec

from headrace.model.aggregate import DISTINCT_EXACT
from headrace.steps import ddsketch, hll
from headrace.steps.algebra import Algebra, Growing
from headrace.steps.row import Order
from headrace.steps.spread import ExactSpread, FloatSpread
from headrace.steps.top_rows import TopRows

_INT_LEAST, _INT_GREATEST = -(1 << 63), (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """One aggregate. `of`: what its argument is ("" for count()); `scale`: the argument's digits after the point;
    `precision`: all digits of a decimal result."""

    name: str
    kind: str
    of: str = ""  # int | float | decimal | text | time | bool | bytes | list
    scale: int = 0
    precision: int = 0
    n: int = 0
    q: float = 0.0

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


class Count:
    """Rows; with an argument, rows where it is not null. State: int."""

    removable = True

    def __init__(self, every_row: bool) -> None:
        self.every_row = every_row

    def empty(self) -> int:
        return 0

    def add(self, state: int, value: Any, order: Order) -> int:
        return state + 1 if self.every_row or value is not None else state

    def merge(self, into: int, other: int) -> int:
        return into + other

    def remove(self, state: int, value: Any) -> int:
        return state - 1 if self.every_row or value is not None else state

    def value(self, state: int) -> int:
        return state


Exact = tuple[int, int]  # how many, total


class ExactSum:
    """Ints and decimals, exact. State: (how many, total). A total that its type cannot hold is null, never wrapped."""

    removable = True

    def __init__(self, precision: int) -> None:
        self.least = 1 - 10**precision if precision else _INT_LEAST
        self.greatest = 10**precision - 1 if precision else _INT_GREATEST

    def empty(self) -> Exact:
        return (0, 0)

    def add(self, state: Exact, value: int | None, order: Order) -> Exact:
        return state if value is None else (state[0] + 1, state[1] + value)

    def merge(self, into: Exact, other: Exact) -> Exact:
        return (into[0] + other[0], into[1] + other[1])

    def remove(self, state: Exact, value: int | None) -> Exact:
        return state if value is None else (state[0] - 1, state[1] - value)

    def value(self, state: Exact) -> int | None:
        return state[1] if state[0] and self.least <= state[1] <= self.greatest else None


class DecimalAvg(ExactSum):
    """The mean with four more digits than the argument, rounded half up (away from zero)."""

    def value(self, state: Exact) -> int | None:
        count, total = state
        if count == 0:
            return None
        half_up = (2 * abs(total) * 10_000 + count) // (2 * count)
        mean = half_up if total >= 0 else -half_up
        return mean if self.least <= mean <= self.greatest else None


class IntAvg(ExactSum):
    """The mean of ints, a float."""

    def value(self, state: Exact) -> float | None:  # type: ignore[override]
        return float(state[1]) / float(state[0]) if state[0] else None


Compensated = tuple[int, float, float]  # how many, total, what rounding lost


class FloatSum(Growing):
    """Floats, compensated (Neumaier), so that order and merging hardly show. State: (how many, total, lost)."""

    def empty(self) -> Compensated:
        return (0, 0.0, 0.0)

    def add(self, state: Compensated, value: float | None, order: Order) -> Compensated:
        if value is None:
            return state
        count, total, lost = state
        new = total + value
        lost += (total - new) + value if abs(total) >= abs(value) else (value - new) + total
        return (count + 1, new, lost)

    def merge(self, into: Compensated, other: Compensated) -> Compensated:
        count, total, lost = self.add(into, other[1], _NO_ORDER)
        return (count - 1 + other[0], total, lost + other[2])

    def value(self, state: Compensated) -> float | None:
        return _finite(state[1] + state[2]) if state[0] else None


class FloatAvg(FloatSum):
    def value(self, state: Compensated) -> float | None:
        return _finite((state[1] + state[2]) / float(state[0])) if state[0] else None


class Least(Growing):
    """State: the least value, or None. Texts compare by code points, that is by their UTF-8 bytes."""

    def empty(self) -> Any:
        return None

    def add(self, state: Any, value: Any, order: Order) -> Any:
        return value if state is None or (value is not None and value < state) else state

    def merge(self, into: Any, other: Any) -> Any:
        return self.add(into, other, _NO_ORDER)

    def value(self, state: Any) -> Any:
        return state


class Greatest(Least):
    def add(self, state: Any, value: Any, order: Order) -> Any:
        return value if state is None or (value is not None and value > state) else state


Ordered = tuple[Order, Any]


class First(Growing):
    """The value of the row that is first in order R2, null if it is null. State: (order, value), or None.

    Of rows of one place, as tiles have them (tiles.py), that which was added first; `Last`: last."""

    def empty(self) -> Ordered | None:
        return None

    def add(self, state: Ordered | None, value: Any, order: Order) -> Ordered | None:
        return (order, value) if state is None or order < state[0] else state

    def merge(self, into: Ordered | None, other: Ordered | None) -> Ordered | None:
        return into if other is None else self.add(into, other[1], other[0])

    def value(self, state: Ordered | None) -> Any:
        return None if state is None else state[1]


class Last(First):
    def add(self, state: Ordered | None, value: Any, order: Order) -> Ordered | None:
        return (order, value) if state is None or order >= state[0] else state


class Distinct(Growing):
    """Exact up to DISTINCT_EXACT different values, then HyperLogLog; `exact` = 0: a sketch from the start.

    State: a set of canonical bytes, or a dict of registers. Which one depends on the values alone, not on their order.
    """

    def __init__(self, of: str, exact: int) -> None:
        self.of = of
        self.exact = exact

    def empty(self) -> set[bytes] | hll.Registers:
        return set() if self.exact else {}

    def add(self, state: set[bytes] | hll.Registers, value: Any, order: Order) -> set[bytes] | hll.Registers:
        if value is None:
            return state
        if isinstance(state, dict):
            hll.add(state, hll.hash64(canonical(self.of, value)))
            return state
        state.add(canonical(self.of, value))
        return self._bounded(state)

    def merge(self, into: set[bytes] | hll.Registers, other: set[bytes] | hll.Registers) -> set[bytes] | hll.Registers:
        if isinstance(into, set) and isinstance(other, set):
            into |= other
            return self._bounded(into)
        sketch = _sketch(into)
        hll.merge(sketch, _sketch(other))
        return sketch

    def value(self, state: set[bytes] | hll.Registers) -> int:
        return len(state) if isinstance(state, set) else hll.estimate(state)

    def _bounded(self, state: set[bytes]) -> set[bytes] | hll.Registers:
        return state if len(state) <= self.exact else _sketch(state)


class Quantile(Growing):
    """State: a DDSketch."""

    def __init__(self, q: float, scale: int) -> None:
        self.q = q
        self.unit = float(10**scale)

    def empty(self) -> ddsketch.Sketch:
        return ddsketch.Sketch()

    def add(self, state: ddsketch.Sketch, value: float | None, order: Order) -> ddsketch.Sketch:
        if value is not None:
            ddsketch.add(state, float(value) / self.unit)
        return state

    def merge(self, into: ddsketch.Sketch, other: ddsketch.Sketch) -> ddsketch.Sketch:
        ddsketch.merge(into, other)
        return into

    def value(self, state: ddsketch.Sketch) -> float | None:
        return ddsketch.quantile(state, self.q)


class Top(Growing):
    """The n greatest values. State: a list, least first."""

    def __init__(self, n: int) -> None:
        self.n = n

    def empty(self) -> list[Any]:
        return []

    def add(self, state: list[Any], value: Any, order: Order) -> list[Any]:
        if value is not None and (len(state) < self.n or value > state[0]):
            insort(state, value)
            if len(state) > self.n:
                state.pop(0)
        return state

    def merge(self, into: list[Any], other: list[Any]) -> list[Any]:
        for value in other:
            self.add(into, value, _NO_ORDER)
        return into

    def value(self, state: list[Any]) -> list[Any]:
        return state[::-1]


class Collect(Growing):
    """The values of the first n rows in order R2. State: a list of (order, value) in that order."""

    def __init__(self, n: int) -> None:
        self.n = n

    def empty(self) -> list[Ordered]:
        return []

    def add(self, state: list[Ordered], value: Any, order: Order) -> list[Ordered]:
        if value is not None and (len(state) < self.n or order < state[-1][0]):
            insort(state, (order, value), key=_order)
            if len(state) > self.n:
                state.pop()
        return state

    def merge(self, into: list[Ordered], other: list[Ordered]) -> list[Ordered]:
        for order, value in other:
            self.add(into, value, order)
        return into

    def value(self, state: list[Ordered]) -> list[Any]:
        return [value for _, value in state]


def algebra(spec: Spec) -> Algebra:
    """The algebra of one aggregate."""
    match spec.kind:
        case "count":
            return Count(every_row=not spec.of)
        case "sum":
            return FloatSum() if spec.of == "float" else ExactSum(spec.precision)
        case "avg" if spec.of == "float":
            return FloatAvg()
        case "avg":
            return DecimalAvg(spec.precision) if spec.of == "decimal" else IntAvg(0)
        case "stddev":
            return FloatSpread() if spec.of == "float" else ExactSpread(spec.scale)
        case "min":
            return Least()
        case "max":
            return Greatest()
        case "first":
            return First()
        case "last":
            return Last()
        case "distinct":
            return Distinct(spec.of, DISTINCT_EXACT)
        case "distinct_approx":
            return Distinct(spec.of, 0)
        case "quantile":
            return Quantile(spec.q, spec.scale)
        case "top":
            return Top(spec.n)
        case "top_rows":
            return TopRows(spec.n)
        case "collect":
            return Collect(spec.n)
    raise AssertionError(f"no algebra for {spec.kind}")


def canonical(of: str, value: Any) -> bytes:
    """The bytes by which values are told apart and hashed: text as UTF-8, whole numbers as digits, floats as their
    IEEE bits (-0.0 as 0.0), lists as JSON."""
    match of:
        case "text":
            return value.encode()  # type: ignore[no-any-return]
        case "bytes":
            return value  # type: ignore[no-any-return]
        case "float":
            return struct.pack(">d", value + 0.0)
        case "bool":
            return b"true" if value else b"false"
        case "list":
            return msgspec.json.encode(value)
        case _:
            return str(value).encode("ascii")


_NO_ORDER: Order = (0, 0, 0, 0, "")


def _order(entry: Ordered) -> Order:
    return entry[0]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _sketch(state: set[bytes] | hll.Registers) -> hll.Registers:
    if isinstance(state, dict):
        return state
    registers: hll.Registers = {}
    for value in state:
        hll.add(registers, hll.hash64(value))
    return registers
