"""DDSketch: within 1 % of the exact quantile, whatever the order, with a bounded number of buckets."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.steps import ddsketch
from headrace.steps.ddsketch import BUCKETS, Sketch
from tests.properties import examples


def sketch(values: list[float]) -> Sketch:
    found = Sketch()
    for value in values:
        ddsketch.add(found, value)
    return found


NUMBERS = st.lists(st.floats(-1e9, 1e9).filter(lambda x: x == 0 or abs(x) > 1e-6), min_size=1, max_size=60)


@examples(200)
@given(NUMBERS, st.sampled_from([0.0, 0.1, 0.5, 0.9, 0.99, 1.0]))
def test_quantiles_are_within_one_percent(values: list[float], q: float) -> None:
    exact = sorted(values)[max(0, math.ceil(q * len(values) - 1e-9) - 1)]

    assert ddsketch.quantile(sketch(values), q) == pytest.approx(exact, rel=0.0101, abs=1e-9)


@examples(100)
@given(NUMBERS, NUMBERS)
def test_merged_sketches_are_the_sketch_of_all_values(left: list[float], right: list[float]) -> None:
    merged = sketch(left)
    ddsketch.merge(merged, sketch(right))

    assert merged == sketch(left + right)


def test_extremes_and_single_values_are_exact() -> None:
    assert ddsketch.quantile(sketch([10.01]), 0.5) == 10.01
    assert ddsketch.quantile(sketch([3.3, 7.7, 9.9]), 0.0) == 3.3
    assert ddsketch.quantile(sketch([3.3, 7.7, 9.9]), 1.0) == 9.9
    assert ddsketch.quantile(Sketch(), 0.5) is None


def test_buckets_are_bounded_and_the_great_values_stay_near() -> None:
    values = [10.0**power * step for power in range(-11, 15) for step in (1.0, 1.3, 1.7, 2.2, 3.0, 4.1, 5.5, 7.3)]
    many = [value * (1 + n / 50) for value in values for n in range(50)]
    found = sketch(many)

    assert len(found.above) <= BUCKETS
    assert ddsketch.quantile(found, 0.9) == pytest.approx(sorted(many)[math.ceil(0.9 * len(many)) - 1], rel=0.0101)
