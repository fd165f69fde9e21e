"""Asking a model: a walk down each tree, and the sum of the leaves; bit for bit what LightGBM and the kernel say."""

from __future__ import annotations

import math
from collections.abc import Sequence

from headrace.model.trees import NAN, ZERO, Model, Tree

NEARLY_ZERO = 1.0000000180025095e-35
"""LightGBM's kZeroThreshold: a float there, compared as a double."""


def score(model: Model, values: Sequence[float]) -> float:
    """The model's answer for these values, one a feature; NaN where there is none."""
    total = raw(model, values)
    if model.average:
        total /= len(model.trees)
    return total if model.sigmoid is None else 1.0 / (1.0 + exp(-model.sigmoid * total))


def raw(model: Model, values: Sequence[float]) -> float:
    """The sum of the trees, in their order: floats do not add up to the same in another."""
    total = 0.0
    for tree in model.trees:
        total += _leaf(tree, values)
    return total


def raised_by(model: Model, values: Sequence[float]) -> list[str]:
    """The features that raised the score most, at most three: each has what the splits that asked for it added to what
    would have been said without them."""
    added = [0.0] * len(model.features)
    for tree in model.trees:
        node = 0 if tree.feature else -1
        while node >= 0:
            child = _child(tree, node, values)
            added[tree.feature[node]] += (tree.inner[child] if child >= 0 else tree.leaf[~child]) - tree.inner[node]
            node = child
    most = sorted((at for at, sum in enumerate(added) if sum > 0), key=lambda at: -added[at])
    return [model.features[at] for at in most[:3]]


def _leaf(tree: Tree, values: Sequence[float]) -> float:
    node = 0 if tree.feature else -1
    while node >= 0:
        node = _child(tree, node, values)
    return tree.leaf[~node]


def _child(tree: Tree, node: int, values: Sequence[float]) -> int:
    """The one that these values lead to."""
    value, missing = values[tree.feature[node]], tree.missing[node]
    if value != value and missing != NAN:
        value = 0.0
    if (missing == NAN and value != value) or (missing == ZERO and -NEARLY_ZERO <= value <= NEARLY_ZERO):
        goes_left = tree.default_left[node]
    else:
        goes_left = value <= tree.threshold[node]
    return tree.left[node] if goes_left else tree.right[node]


_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_P = (1.66666666666666019037e-01, -2.77777777770155933842e-03, 6.61375632143793436117e-05,
      -1.65339022054652515390e-06, 4.13813679705723846039e-08)  # fmt: skip
_HALF_LN2 = float.fromhex("0x1.62e4300000000p-2")
_LN2_AND_HALF = float.fromhex("0x1.0a2b200000000p+0")


def exp(x: float) -> float:
    """e to the x as fdlibm computes it, and with it Java's StrictMath: the same bits on every machine. math.exp is that
    of the C library, which differs from it, and from one machine to the next, in the last digit."""
    if x != x:
        return x
    if x > 709.782712893383973096:
        return math.inf
    if x < -745.13321910194110842:
        return 0.0
    size, k, high, low = abs(x), 0, x, 0.0
    if size >= _HALF_LN2:
        if size < _LN2_AND_HALF:
            k = 1 if x > 0 else -1
            high, low = x - math.copysign(_LN2_HIGH, x), math.copysign(_LN2_LOW, x)
        else:
            k = int(1.44269504088896338700 * x + math.copysign(0.5, x))
            high, low = x - k * _LN2_HIGH, k * _LN2_LOW
        x = high - low
    elif size < 2.0**-28:
        return 1.0 + x
    t = x * x
    c = x - t * (_P[0] + t * (_P[1] + t * (_P[2] + t * (_P[3] + t * _P[4]))))
    if k == 0:
        return 1.0 - ((x * c) / (c - 2.0) - x)
    return math.ldexp(1.0 - ((low - (x * c) / (2.0 - c)) - high), k)
