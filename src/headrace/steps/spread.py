"""The spread of values around their mean: the standard deviation of a sample, null for fewer than two.

Ints and decimals exactly, up to the last root: by how many, their sum and the sum of their squares, which can be taken
back. Floats by Welford's way, in which the mean is known as values come; merged by Chan's.
"""

from __future__ import annotations

import math

from headrace.steps.algebra import Growing
from headrace.steps.row import Order

Moments = tuple[int, int, int]  # how many, total, total of the squares
Deviations = tuple[int, float, float]  # how many, mean, total of squared distances from it


class ExactSpread:
    """Of whole units of a scale."""

    removable = True

    def __init__(self, scale: int) -> None:
        self.unit = float(10**scale)

    def empty(self) -> Moments:
        return (0, 0, 0)

    def add(self, state: Moments, value: int | None, order: Order) -> Moments:
        return state if value is None else (state[0] + 1, state[1] + value, state[2] + value * value)

    def merge(self, into: Moments, other: Moments) -> Moments:
        return (into[0] + other[0], into[1] + other[1], into[2] + other[2])

    def remove(self, state: Moments, value: int | None) -> Moments:
        return state if value is None else (state[0] - 1, state[1] - value, state[2] - value * value)

    def value(self, state: Moments) -> float | None:
        count, total, squares = state
        if count < 2:
            return None
        return math.sqrt(float(count * squares - total * total) / float(count * (count - 1))) / self.unit


class FloatSpread(Growing):
    def empty(self) -> Deviations:
        return (0, 0.0, 0.0)

    def add(self, state: Deviations, value: float | None, order: Order) -> Deviations:
        if value is None:
            return state
        count, mean, squares = state
        far = value - mean
        mean += far / float(count + 1)
        return (count + 1, mean, squares + far * (value - mean))

    def merge(self, into: Deviations, other: Deviations) -> Deviations:
        if into[0] == 0 or other[0] == 0:
            return other if into[0] == 0 else into
        count = into[0] + other[0]
        far, share = other[1] - into[1], float(other[0]) / float(count)
        return (count, into[1] + far * share, into[2] + other[2] + far * far * float(into[0]) * share)

    def value(self, state: Deviations) -> float | None:
        count, _, squares = state
        return math.sqrt(squares / float(count - 1)) if count > 1 and math.isfinite(squares) else None
