"""The algebras of aggregates: values, nulls, limits; merging in any grouping and order gives the same."""

from __future__ import annotations

import math
import random
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from statistics import variance
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.model.aggregate import DISTINCT_EXACT
from headrace.steps import hll
from headrace.steps.aggregate import Spec, algebra, canonical
from headrace.steps.row import NAN, OVERFLOW, Row
from headrace.steps.tally import Tally
from tests.properties import examples

KINDS: dict[str, Spec] = {
    "count()": Spec(name="x", kind="count"),
    "count": Spec(name="x", kind="count", of="int"),
    "sum": Spec(name="x", kind="sum", of="int"),
    "sum of money": Spec(name="x", kind="sum", of="decimal", scale=2, precision=28),
    "avg": Spec(name="x", kind="avg", of="int"),
    "avg of money": Spec(name="x", kind="avg", of="decimal", scale=2, precision=22),
    "stddev": Spec(name="x", kind="stddev", of="int"),
    "stddev of money": Spec(name="x", kind="stddev", of="decimal", scale=2),
    "min": Spec(name="x", kind="min", of="int"),
    "max": Spec(name="x", kind="max", of="int"),
    "first": Spec(name="x", kind="first", of="int"),
    "last": Spec(name="x", kind="last", of="int"),
    "distinct": Spec(name="x", kind="distinct", of="int"),
    "distinct_approx": Spec(name="x", kind="distinct_approx", of="int"),
    "quantile": Spec(name="x", kind="quantile", of="int", q=0.5),
    "top": Spec(name="x", kind="top", of="int", n=3),
    "collect": Spec(name="x", kind="collect", of="int", n=4),
}


def rows(values: list[Any]) -> list[Row]:
    return [Row(n, (n, 0, 0, n, ""), (value,)) for n, value in enumerate(values)]


def told(spec: Spec, values: list[Any]) -> Any:
    return merged(spec, [rows(values)])


def merged(spec: Spec, parts: list[list[Row]]) -> Any:
    """Each part added up by itself, then merged from the left."""
    tally = Tally((spec,))
    total = tally.empty()
    for part in parts:
        states = tally.empty()
        for row in part:
            tally.add(states, row)
        tally.merge(total, states)
    return tally.values(total)[0]


@pytest.mark.parametrize(
    ("kind", "values", "wanted"),
    [
        ("count()", [5, None, 5], 3),
        ("count", [5, None, 5], 2),
        ("sum", [1, None, 2], 3),
        ("sum", [None], None),
        ("avg", [1, 2, None], 1.5),
        ("avg of money", [100, 100, 101], 1_003_333),
        ("avg of money", [-100, -100, -101], -1_003_333),
        ("avg of money", [1, 2, None], 15_000),
        ("stddev", [2, 4, None, 4, 4, 5, 5, 7, 9], math.sqrt(32 / 7)),
        ("stddev", [7], None),
        ("stddev of money", [10**17, 10**17 + 2], math.sqrt(2) / 100),
        ("min", [3, None, 1, 2], 1),
        ("max", [3, None, 1, 2], 3),
        ("first", [None, 1, 2], None),
        ("first", [7, 1, None], 7),
        ("last", [7, 1, None], None),
        ("distinct", [1, 2, 2, None, 1], 2),
        ("distinct_approx", [1, 2, 2, None, 1], 2),
        ("quantile", [5], 5.0),
        ("quantile", [], None),
        ("top", [2, 9, None, 9, 1, 5], [9, 9, 5]),
        ("collect", [3, None, 1, 2, 9, 8], [3, 1, 2, 9]),
    ],
)
def test_values(kind: str, values: list[Any], wanted: Any) -> None:
    assert told(KINDS[kind], values) == wanted


def test_d5_money_is_summed_in_whole_cents() -> None:
    """A hundred thousand times ten cents is ten thousand, to the cent; as floats it would not be."""
    assert told(KINDS["sum of money"], [10] * 100_000) == 1_000_000
    assert sum([0.1] * 100_000) != 10_000.0


def test_d5_a_sum_that_leaves_128_bits_refuses_the_row() -> None:
    tally = Tally((Spec(name="x", kind="sum", of="decimal", precision=38),))
    states = tally.empty()
    tally.add(states, rows([2**127 - 10])[0])

    assert tally.refuses(states, rows([9])[0]) == ""
    assert tally.refuses(states, rows([10])[0]) == OVERFLOW
    assert tally.refuses(None, rows([-(2**127) - 1])[0]) == OVERFLOW


def test_d5_a_total_that_its_type_cannot_hold_is_null_never_wrapped() -> None:
    assert told(KINDS["sum"], [2**63 - 1]) == 2**63 - 1
    assert told(KINDS["sum"], [2**63 - 1, 1]) is None
    assert told(KINDS["sum of money"], [10**28 - 1]) == 10**28 - 1
    assert told(KINDS["sum of money"], [10**28 - 1, 1]) is None


def test_d5_float_sums_keep_what_rounding_loses() -> None:
    spec = Spec(name="x", kind="sum", of="float")

    assert told(spec, [1.0, 1e100, 1.0, -1e100]) == 2.0
    assert told(spec, [0.1] * 10) == 1.0


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("kind", ["sum", "avg", "stddev", "min", "first", "distinct", "quantile", "collect"])
def test_b3_a_float_that_is_no_number_refuses_the_row(kind: str, bad: float) -> None:
    tally = Tally((Spec(name="x", kind=kind, of="float", n=1),))

    assert tally.refuses(None, rows([bad])[0]) == NAN
    assert tally.refuses(None, rows([None])[0]) == ""
    assert tally.refuses(None, rows([1.5])[0]) == ""


INTS = st.lists(st.one_of(st.none(), st.integers(-1000, 1000)), max_size=30)


@examples(60)
@given(INTS, st.data())
@pytest.mark.parametrize("kind", KINDS)
def test_merging_in_any_grouping_and_order_gives_the_same(kind: str, values: list[int | None], data: Any) -> None:
    spec, all_rows = KINDS[kind], rows(values)
    shuffled = data.draw(st.permutations(all_rows))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(values)), max_size=4)))
    parts = [shuffled[a:b] for a, b in zip([0, *cuts], [*cuts, len(values)], strict=True)]

    assert merged(spec, parts) == merged(spec, [all_rows])


@examples(60)
@given(INTS, INTS)
@pytest.mark.parametrize("kind", [name for name, spec in KINDS.items() if algebra(spec).removable])
def test_what_is_added_can_be_removed(kind: str, kept: list[int | None], removed: list[int | None]) -> None:
    tally = Tally((KINDS[kind],))
    states = tally.empty()
    for row in rows(kept) + rows(removed):
        tally.add(states, row)
    for row in rows(removed):
        tally.remove(states, row)

    assert tally.values(states)[0] == told(KINDS[kind], kept)


@examples(100)
@given(st.lists(st.integers(-(10**17), 10**17), min_size=1, max_size=20))
def test_the_mean_of_money_is_the_exact_mean_rounded_half_up(cents: list[int]) -> None:
    exact = Fraction(sum(cents), len(cents)) * 10_000
    floor = exact.numerator // exact.denominator
    nearest = Decimal(floor) + (Decimal(exact.numerator - floor * exact.denominator) / Decimal(exact.denominator))
    if exact.denominator <= 2:  # ties and whole values: Decimal itself shows which way
        assert told(KINDS["avg of money"], cents) == int(nearest.quantize(Decimal(1), ROUND_HALF_UP))
    assert abs(Fraction(told(KINDS["avg of money"], cents)) - exact) <= Fraction(1, 2)


@examples(100)
@given(st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=50), st.randoms())
def test_d5_float_sums_agree_in_any_order(values: list[float], chance: random.Random) -> None:
    spec = Spec(name="x", kind="sum", of="float")
    shuffled = values[:]
    chance.shuffle(shuffled)

    wanted = math.fsum(values)
    scale = max(1.0, math.fsum(map(abs, values)))
    assert abs(told(spec, shuffled) - wanted) <= 1e-9 * scale


@examples(100)
@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=50), st.integers(0, 50))
def test_d5_the_spread_of_floats_is_that_of_the_exact_values_however_they_are_split(
    values: list[float], cut: int
) -> None:
    """Far from zero, where the difference of two sums of squares would have lost it."""
    moved = [value + 1e6 for value in values]
    wanted = math.sqrt(Fraction(variance(map(Fraction, moved))))
    spec, all_rows = Spec(name="x", kind="stddev", of="float"), rows(moved)

    assert merged(spec, [all_rows]) == pytest.approx(wanted, rel=1e-9, abs=1e-6)
    assert merged(spec, [all_rows[:cut], [], all_rows[cut:]]) == pytest.approx(wanted, rel=1e-9, abs=1e-6)


def test_d5_distinct_is_exact_up_to_its_bound_then_near() -> None:
    spec = KINDS["distinct"]

    assert told(spec, list(range(DISTINCT_EXACT))) == DISTINCT_EXACT
    for count in (DISTINCT_EXACT + 1, 5_000, 50_000):
        assert told(spec, list(range(count))) == pytest.approx(count, rel=0.05)


def test_d5_distinct_is_bounded_however_many_values_there_are() -> None:
    tally = Tally((KINDS["distinct"],))
    states = tally.empty()
    for row in rows(list(range(20_000))):
        tally.add(states, row)

    assert isinstance(states[0], dict)
    assert len(states[0]) <= hll.M


def test_d5_distinct_does_not_depend_on_how_the_rows_were_split() -> None:
    spec = KINDS["distinct"]
    all_rows = rows(list(range(1_500)))
    whole = merged(spec, [all_rows])

    assert merged(spec, [all_rows[:10], all_rows[10:]]) == whole
    assert merged(spec, [all_rows[1_200:], all_rows[:300], all_rows[300:1_200]]) == whole
    assert merged(spec, [all_rows[:1_100], all_rows[400:]]) == whole


@pytest.mark.parametrize(
    ("of", "value", "data"),
    [
        ("text", "é", b"\xc3\xa9"),
        ("int", -7, b"-7"),
        ("decimal", 1234, b"1234"),
        ("time", 1, b"1"),
        ("bool", True, b"true"),
        ("float", 1.0, b"\x3f\xf0" + bytes(6)),
        ("float", -0.0, bytes(8)),
        ("bytes", b"\x00", b"\x00"),
        ("list", ["é", 1], b'["\xc3\xa9",1]'),
    ],
)
def test_values_have_one_canonical_form(of: str, value: Any, data: bytes) -> None:
    assert canonical(of, value) == data


def test_merging_leaves_the_second_state_as_it_was() -> None:
    for spec in KINDS.values():
        tally = Tally((spec,))
        one, other = tally.empty(), tally.empty()
        for row in rows([1, 2]):
            tally.add(one, row)
        tally.add(other, rows([3])[0])
        before = tally.values(other)

        tally.merge(one, other)
        for row in rows([4, 5]):
            tally.add(one, row)

        assert tally.values(other) == before


def test_the_spec_is_plain_json() -> None:
    assert KINDS["avg of money"].as_json() == {
        "name": "x", "kind": "avg", "of": "decimal", "scale": 2, "precision": 22, "n": 0, "q": 0.0,
    }  # fmt: skip


TOP_ROWS = Spec(name="x", kind="top_rows", of="int", n=3)


def test_top_rows_are_the_rows_of_the_greatest_values_and_of_equal_ones_the_first() -> None:
    values = [(1, "a"), (5, "b"), (None, "c"), (5, "d"), (3, "e"), (5, "f"), (9, "g")]

    assert told(TOP_ROWS, values) == ["g", "b", "d"]
    assert told(TOP_ROWS, [(None, "a")]) == []


@examples(100)
@given(st.lists(st.tuples(st.none() | st.integers(0, 3), st.integers()), max_size=12), st.data())
def test_top_rows_merge_in_any_grouping(values: list[Any], data: st.DataObject) -> None:
    """Against sorting all rows."""
    all_rows = rows(values)
    parts: list[list[Row]] = [[], [], []]
    for row in all_rows:
        parts[data.draw(st.integers(0, 2))].append(row)
    data.draw(st.randoms(use_true_random=False)).shuffle(parts)
    ranked = sorted((row for row in all_rows if row.args[0][0] is not None), key=lambda r: (-r.args[0][0], r.order))

    assert merged(TOP_ROWS, parts) == [row.args[0][1] for row in ranked[:3]]


def test_what_top_rows_are_ranked_by_must_be_a_number() -> None:
    tally = Tally((Spec(name="x", kind="top_rows", of="float", n=3),))

    assert tally.refuses(None, rows([(math.nan, "a")])[0]) == NAN
    assert tally.refuses(None, rows([(None, "a")])[0]) == ""
