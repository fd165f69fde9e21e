"""DDSketch: quantiles within 1 % of the value, from buckets whose width grows with the value.

Bucket i holds the values in (GAMMA^(i-1), GAMMA^i]. At most 2,048 buckets a side: that covers 17 powers of ten;
beyond it the buckets nearest to zero are put together, so that the great values stay exact within 1 %.
The least and the greatest value are kept as they are: the quantiles 0 and 1, and those of one value, are exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

ERROR = 0.01
GAMMA = (1.0 + ERROR) / (1.0 - ERROR)
_LOG_GAMMA = math.log(GAMMA)
ROUNDING = 1e-9  # 0.07 * 100 is a little more than 7
BUCKETS = 2_048
TINY = 1e-12  # nearer to zero than this is zero

Buckets = dict[int, int]


@dataclass(slots=True)
class Sketch:
    count: int = 0
    zeros: int = 0
    least: float = math.inf
    greatest: float = -math.inf
    above: Buckets = field(default_factory=dict)  # positive values, by index
    below: Buckets = field(default_factory=dict)  # negative values, by index of their magnitude


def add(sketch: Sketch, value: float) -> None:
    sketch.count += 1
    sketch.least = min(sketch.least, value)
    sketch.greatest = max(sketch.greatest, value)
    if value > TINY:
        _put(sketch.above, math.ceil(math.log(value) / _LOG_GAMMA), 1)
    elif value < -TINY:
        _put(sketch.below, math.ceil(math.log(-value) / _LOG_GAMMA), 1)
    else:
        sketch.zeros += 1


def merge(into: Sketch, other: Sketch) -> None:
    into.count += other.count
    into.zeros += other.zeros
    into.least = min(into.least, other.least)
    into.greatest = max(into.greatest, other.greatest)
    for index, count in other.above.items():
        _put(into.above, index, count)
    for index, count in other.below.items():
        _put(into.below, index, count)


def quantile(sketch: Sketch, q: float) -> float | None:
    """The nearest rank: the least value that at least q of all values do not exceed; None of nothing."""
    if sketch.count == 0:
        return None
    rank = max(0, math.ceil(q * sketch.count - ROUNDING) - 1)
    if rank == 0:
        return sketch.least
    if rank == sketch.count - 1:
        return sketch.greatest
    return min(max(_at(sketch, rank), sketch.least), sketch.greatest)


def _at(sketch: Sketch, rank: int) -> float:
    seen = 0
    for index in sorted(sketch.below, reverse=True):
        seen += sketch.below[index]
        if seen > rank:
            return -_middle(index)
    seen += sketch.zeros
    if seen > rank:
        return 0.0
    for index in sorted(sketch.above):
        seen += sketch.above[index]
        if seen > rank:
            return _middle(index)
    return sketch.greatest


def _middle(index: int) -> float:
    """The value no further than 1 % from both ends of the bucket."""
    return 2.0 * math.exp(index * _LOG_GAMMA) / (GAMMA + 1.0)


def _put(buckets: Buckets, index: int, count: int) -> None:
    buckets[index] = buckets.get(index, 0) + count
    if len(buckets) > BUCKETS:
        least = min(buckets)
        moved = buckets.pop(least)
        buckets[min(buckets)] += moved
