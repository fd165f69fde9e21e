"""Aggregates that give values back: whatever came and went, the value is that of what is left."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.model import aggregate as declared
from headrace.model.aggregate import UNRETRACTABLE
from headrace.steps.aggregate import Spec
from headrace.steps.ddsketch import ERROR
from headrace.steps.retractable import retractable
from tests.properties import examples
from tests.steps.test_aggregate import KINDS, told

ORDER = (0, 0, 0, 0, "")
KEPT = [name for name, spec in KINDS.items() if spec.kind not in UNRETRACTABLE]
FLOAT_SUM = Spec(name="x", kind="sum", of="float")
FLOAT_AVG = Spec(name="x", kind="avg", of="float")


def left(spec: Spec, kept: list[Any], gone: list[Any]) -> Any:
    """The value after all were added and those gone were removed, one by one in between."""
    algebra = retractable(spec)
    state = algebra.empty()
    for value in gone:
        state = algebra.add(state, value, ORDER)
    for value in kept:
        state = algebra.add(state, value, ORDER)
    for value in reversed(gone):
        state = algebra.remove(state, value)
    return algebra.value(state)


INTS = st.lists(st.one_of(st.none(), st.integers(-50, 50), st.integers(0, 2)), max_size=20)


@pytest.mark.parametrize("kind", KEPT)
@examples(60)
@given(INTS, INTS)
def test_what_is_left_counts_and_nothing_else(kind: str, kept: list[int | None], gone: list[int | None]) -> None:
    wanted = told(KINDS[kind], kept)

    if kind == "quantile" and wanted is not None:
        wanted = pytest.approx(wanted, rel=1.02 * ERROR)  # exact here, a sketch there
    assert left(KINDS[kind], kept, gone) == wanted


def test_top_repeats_a_value_as_often_as_it_is_there_but_no_more_than_n_values() -> None:
    assert left(KINDS["top"], [9, 9, 9, 9, 1], []) == [9, 9, 9]
    assert left(KINDS["top"], [9, 1, 9, 1], [9]) == [9, 9, 1]


def test_a_quantile_is_exact() -> None:
    quantile = Spec(name="x", kind="quantile", of="decimal", scale=2, q=0.9)

    assert left(quantile, list(range(100, 1_100, 100)), [5, 5_000]) == 9.0
    assert left(Spec(name="x", kind="quantile", of="int", q=0.0), [3, 1, 2], []) == 1.0
    assert left(Spec(name="x", kind="quantile", of="int", q=1.0), [3, 1, 3], [3]) == 3.0
    assert left(quantile, [], [5]) is None


@examples(200)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False)), st.lists(st.floats(-1e300, 1e300)))
def test_d5_float_sums_are_exact_and_keep_no_trace_of_what_is_gone(kept: list[float], gone: list[float]) -> None:
    try:
        wanted = float(sum(map(Fraction, kept))) if kept else None
    except OverflowError:
        wanted = None

    assert left(FLOAT_SUM, kept, gone) == wanted
    if wanted is not None:
        assert left(FLOAT_AVG, kept, gone) == wanted / len(kept)


def test_d5_a_float_sum_that_would_drift_does_not() -> None:
    algebra = retractable(FLOAT_SUM)
    state = one = algebra.add(algebra.empty(), 0.1, ORDER)
    for passing in (1e300, 5e-324, -7.0):
        state = algebra.remove(algebra.add(state, passing, ORDER), passing)

    assert state == one
    assert algebra.remove(state, 0.1) == algebra.empty()
    assert left(FLOAT_SUM, [0.1, 0.2], [1e16, 5e-324]) == 0.1 + 0.2
    assert left(FLOAT_SUM, [1e308, 1e308], []) is None


def test_every_aggregate_is_either_kept_or_refused_with_a_reason() -> None:
    assert {spec.kind for spec in KINDS.values()} == set(declared._RESULT)
    assert set(UNRETRACTABLE) < set(declared._RESULT)
    for spec in KINDS.values():
        if spec.kind in UNRETRACTABLE:
            assert UNRETRACTABLE[spec.kind]
            with pytest.raises(AssertionError):
                retractable(spec)
        else:
            retractable(spec)
