"""Routes: rows that several steps read are copied, but counted and buried once; what they compute is computed once."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import headrace as hr
from headrace.log.broker import Broker
from headrace.spark.session import Spark
from tests.spark.flowing import Flowing, visit_on


def test_d3_a_step_with_two_readers_counts_its_rows_once(
    spark: Spark, broker: Broker, topic: str, tmp_path: Path
) -> None:
    @hr.event(topic=topic, key="card", time="at")
    class Payment:
        card: str
        amount: int
        at: datetime

    app = hr.App("copies")
    large = app.stream(Payment, disorder="0 s").where("amount > 10").named("large")
    double = large.select("card, amount * 2 as amount").named("double")
    large.to(app.topic(f"{topic}-large"))
    for name in ("one", "other"):
        double.to(app.topic(f"{topic}-{name}"), key="card")
    flowing = Flowing(spark, broker, tmp_path, app)

    with flowing.live() as live:
        live.batch(*(Payment("c1", amount, datetime(2026, 11, 3, tzinfo=UTC)) for amount in (5, 20, 2**63 - 1)))
        counts = live.counts()

    assert (counts["large"].entered, counts["large"].used, counts["large"].filtered) == (3, 2, 1)
    assert (counts["double"].entered, counts["double"].used, counts["double"].dead) == (2, 1, 1)
    assert [letter.reason for letter in flowing.letters()] == ["does-not-fit"]
    assert [len(flowing.rows(f"{topic}-{name}")) for name in ("large", "one", "other")] == [2, 1, 1]


def test_what_steps_compute_from_each_other_is_computed_once(
    spark: Spark, broker: Broker, topic: str, tmp_path: Path
) -> None:
    visit = visit_on(topic)
    app = hr.App("doubled")
    doubled = app.stream(visit, disorder="0 s").dedup("visit", within="1 h")
    for _ in range(24):  # written out, 16 million times the money, and its faults
        doubled = doubled.select("page, spent + spent as spent")
    doubled.to(app.topic(f"{topic}-out"), key="page")
    flowing = Flowing(spark, broker, tmp_path, app)

    with flowing.live() as live:
        live.batch(visit("v1", "home", datetime(2026, 11, 3, tzinfo=UTC), 3))

    assert [row["spent"] for row in flowing.rows(f"{topic}-out")] == [3 * 2**24]
