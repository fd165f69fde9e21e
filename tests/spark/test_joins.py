"""Joins from Kafka to Kafka: what Spark wrote is what the reference gives for the schedule that Spark recorded."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import headrace as hr
from headrace.log.broker import Broker
from headrace.spark.session import Spark
from tests.spark.bench import Bench

DAY = datetime(2026, 11, 3, 10, tzinfo=UTC)


def events(topic: str) -> tuple[type, type]:
    """Impressions and clicks, in topics of this test's own."""

    @hr.event(topic=f"{topic}-impressions", key="user_id", time="at", id="impression_id")
    class Impression:
        impression_id: str
        ad_id: str | None
        user_id: str
        price: hr.Money
        at: datetime

    @hr.event(topic=f"{topic}-clicks", key="user_id", time="at", id="click_id")
    class Click:
        click_id: str
        ad_id: str | None
        user_id: str
        at: datetime

    return Impression, Click


HOWS = {
    "inner": ("0 s", "2 min"),
    "left": ("-30 s", "1 min"),
    "right": ("10 s", "90 s"),
    "full": ("-2 min", "-10 s"),
    "semi": ("0 s", "1 min"),
    "anti": ("-1 min", "1 min"),
}


def joins(app: hr.App, topic: str, impression: type, click: type, disorder: str, hows: tuple[str, ...]) -> None:
    """Kinds of joins beside each other, a join after a join, a window after an outer join, and a union."""
    impressions = app.stream(impression, disorder=disorder, idle="300 ms", name="impressions")
    clicks = app.stream(click, disorder=disorder, idle="300 ms", name="clicks")
    out = lambda name: app.topic(f"{topic}-{name}", partitions=2)  # noqa: E731
    for how in hows:
        prefix = None if how in ("semi", "anti") else "click_"
        joined = impressions.join(clicks, on="ad_id, user_id", within=HOWS[how], how=how, prefix=prefix)
        joined.to(out(how), key="user_id")
        joined.late.to(out(f"{how}-late"))
        joined.unmatched.to(out(f"{how}-unmatched"))
        if how == "left":
            again = joined.alias("seen").join(clicks.alias("second"), on="user_id", within="1 min", prefix="second_")
            again.to(out("again"))
            ever = joined.select("user_id, at").union(again.select("user_id, at"))  # of rows that steps made
            ever.to(out("ever"))
            third = ever.alias("ever").join(clicks.alias("third"), on="user_id", within="1 min", prefix="third_")
            third.to(out("third"))
            rate = joined.window(hr.tumbling("1 min"), lateness="10 s").agg(
                n=hr.count(), hit=hr.count("click_click_id")
            )
            rate.to(out("rate"))
            rate.late.to(out("rate-late"))
    mine = clicks.where("user_id <> 'u1'").select("user_id, at")
    mine.union(impressions.select("user_id, at"), clicks.select("user_id, at")).to(out("both"))


def random_rows(impression: type, click: type, seed: int, rows: int) -> list[object]:
    """Out of order, with equal times and null keys."""
    chance = random.Random(seed)
    found: list[object] = []
    at = DAY
    for number in range(rows):
        at += timedelta(seconds=chance.choice((0, 1, 5, 20)))
        time = at - timedelta(seconds=chance.choice((0, 0, 0, 10, 60, 300)), microseconds=chance.choice((0, 0, 1)))
        ad, user = chance.choice(("a", "b", None)), f"u{chance.randrange(3)}"
        if chance.random() < 0.5:
            found.append(impression(f"i{number}", ad, user, hr.money(number), time))
        else:
            found.append(click(f"c{number}", ad, user, time))
    return found


@pytest.mark.parametrize(
    ("seed", "disorder", "hows"), [(1, "5 min", ("inner", "semi", "full")), (2, "5 s", ("left", "right", "anti"))]
)
def test_j1_to_j3_history_equals_the_reference_on_the_recorded_schedule(
    spark: Spark, broker: Broker, topic: str, tmp_path: Path, seed: int, disorder: str, hows: tuple[str, ...]
) -> None:
    app, both = hr.App("bench"), events(topic)
    joins(app, topic, *both, disorder, hows)
    run = Bench(spark, broker, tmp_path, app)
    run.fill(random_rows(*both, seed, 120))

    run.history(max_records=30)

    assert len(run.check().records) > 200  # the comparison is not of nothing


def test_j1_to_j3_a_live_run_with_stops_equals_the_reference(
    spark: Spark, broker: Broker, topic: str, tmp_path: Path
) -> None:
    app, both = hr.App("bench"), events(topic)
    joins(app, topic, *both, "20 s", ("left", "full"))
    run = Bench(spark, broker, tmp_path, app)
    rows = random_rows(*both, 7, 120)
    for part in (rows[:70], rows[70:]):
        run.fill(part)
        run.live(40, rows=len(part))
    run.check(stopped=True)
