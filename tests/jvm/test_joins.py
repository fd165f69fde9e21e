"""The Scala joins say what the Python joins say: random lives of a key, run by both and compared exactly."""

from __future__ import annotations

from random import Random

from headrace.spark.session import Spark
from tests.jvm.agreeing import check
from tests.jvm.joining import HOWS, as_of_spec, case_of, current_spec, interval_spec, model_of
from tests.properties import DEPTH

CASES = 2_000 * DEPTH


def test_interval_joins(spark: Spark) -> None:
    """Bounds of either sign and without 0, every `how`, the same row on both sides, rows without key."""
    cases = [case_of(Random(seed), interval_spec) for seed in range(CASES)]
    assert {case["spec"]["how"] for case in cases} == set(HOWS)
    check(spark, cases, model_of)


def test_interval_joins_of_busy_keys(spark: Spark) -> None:
    """Hundreds of entries, most of which no row of a batch touches."""
    check(spark, [case_of(Random(seed), interval_spec, rows=150) for seed in range(100 * DEPTH)], model_of)


def test_as_of(spark: Spark) -> None:
    """Versions and rows out of order and of equal times, tombstones, versions older than the history, times to live."""
    check(spark, [case_of(Random(seed), as_of_spec) for seed in range(CASES)], model_of)


def test_current(spark: Spark) -> None:
    """Rows whose time to live is up, some when they come."""
    check(spark, [case_of(Random(seed), current_spec) for seed in range(CASES)], model_of)
