"""Real-time mode (rule R5): the same declaration, rows in milliseconds, from Kafka to Kafka."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.base.clock import rfc3339
from headrace.base.errors import ModeRefused
from headrace.base.ids import stable_id
from headrace.log.broker import Broker
from headrace.observe.snapshot import Counts
from headrace.spark.running import Running
from headrace.spark.session import Spark
from tests.spark.flowing import Flowing, running, short_batches, until, visit_on

DAY = datetime(2020, 1, 1, 10, tzinfo=UTC)


def declared(event: Any, topic: str) -> hr.App:
    app = hr.App("site")
    visits = app.stream(event, disorder="10 s")
    out = lambda name: app.topic(f"{topic}-{name}", partitions=1)  # noqa: E731
    visits.where("spent > 0").select("visit, page, spent * 2 as twice").to(out("twice"), key="page")
    once = visits.dedup("visit", within="1 h").named("once")
    once.to(out("once"))
    once.duplicates.to(out("again"))
    return app


NOTHING = Counts(step="")


def counted(run: Running) -> dict[str, Counts]:
    return {counts.step: counts for counts in run.snapshot.counts}


def test_r5_rows_pass_while_the_interval_lasts_and_duplicates_are_dropped_over_restarts(
    spark: Spark, broker: Broker, topic: str, tmp_path: Path
) -> None:
    event = visit_on(topic)
    flowing = Flowing(spark, broker, tmp_path, declared(event, topic), partitions=2)
    visits = [event(f"v{n}", f"p{n % 3}", DAY + timedelta(seconds=n), n % 4) for n in range(20)]
    read = lambda name: flowing.rows(f"{topic}-{name}")  # noqa: E731

    # when rows come twice, the interval being longer than the test
    with running(flowing, "10 min") as first:
        flowing.send(*visits[:10])
        flowing.send(*visits[:5])
        until(lambda: len(read("once")) == 10 and len(read("again")) == 5, every=0.1)
        assert first.snapshot.batch == -1  # the batch has not ended: nothing waited for it

    # then after a break-off they come again (at least once), under the ids they had
    with short_batches(spark), running(flowing, "2 s") as second:
        until(lambda: counted(second).get("once", NOTHING).entered == 15, every=0.1)  # in an interval that has ended
        assert len(set(flowing.ids(f"{topic}-once"))) == 10
        flowing.send(*visits[5:], partition=1)
        until(lambda: {row["visit"] for row in read("once")} == {visit.visit for visit in visits}, every=0.1)
        until(lambda: counted(second).get("once", NOTHING).entered == 30)
        counts, keys = counted(second), second.snapshot.state_keys

    assert {row["visit"] for row in read("twice")} == {visit.visit for visit in visits if visit.spent}
    places = {(visit.visit, f"{topic}/0/{n}") for n, visit in enumerate(visits[:10])}
    places |= {(visit.visit, f"{topic}/1/{n + 5}") for n, visit in enumerate(visits[10:])}
    pages = {visit.visit: visit.page for visit in visits}
    wanted = {stable_id("site", "v1", f"{topic}-once", pages[visit], place) for visit, place in places}
    assert set(flowing.ids(f"{topic}-once")) == wanted
    assert all(one.missing == 0 for one in counts.values())
    assert (counts["once"].used, counts["once"].duplicates) == (20, 10)
    assert keys == len(visits)


def test_r5_p1_a_pattern_takes_rows_as_they_arrive_and_tells_matches_at_once_timeouts_at_the_end(
    spark: Spark, broker: Broker, topic: str, tmp_path: Path
) -> None:
    event, app = visit_on(topic), hr.App("site")
    visits = app.stream(event, disorder="10 s")
    longer = app.pattern("longer", key="page", select="page, one.visit as one, two.visit as two")
    longer = longer.first("one", visits).then("two", visits, where="two.spent > one.spent").within("1 min")
    longer.matches.to(app.topic(f"{topic}-longer", partitions=1))
    longer.timeouts.to(app.topic(f"{topic}-alone", partitions=1))
    flowing = Flowing(spark, broker, tmp_path, app)
    at = lambda second: DAY + timedelta(seconds=second)  # noqa: E731
    told = lambda: {(row["page"], row["one"], row["two"]) for row in flowing.rows(f"{topic}-longer")}  # noqa: E731

    # when a row comes later than one that is younger, the interval being longer than the test
    with running(flowing, "10 min") as first:
        flowing.send(event("v1", "p", at(30), 5))
        flowing.send(event("v2", "p", at(10), 7), event("v3", "q", at(10), 1))  # older, but it came later
        until(lambda: told() == {("p", "v1", "v2")}, every=0.1)
        flowing.send(event("v4", "q", at(80), 9))  # more than a minute away
        flowing.send(event("v5", "q", at(60), 2))
        until(lambda: told() == {("p", "v1", "v2"), ("q", "v3", "v5")}, every=0.1)
        assert first.snapshot.batch == -1  # the batch has not ended: nothing waited for it

    # then what time brings comes when an interval has ended
    with short_batches(spark), running(flowing, "2 s"):
        flowing.send(event("v6", "r", at(200), 1), event("v7", "s", at(400), 1))
        until(lambda: "v6" in {row["one"] for row in flowing.rows(f"{topic}-alone")}, every=0.1)
    assert told() == {("p", "v1", "v2"), ("q", "v3", "v5")}


def test_r5_features_are_told_as_rows_arrive_and_equal_those_of_the_reference(
    spark: Spark, broker: Broker, topic: str, tmp_path: Path
) -> None:
    event, app = visit_on(topic), hr.App("site")
    visits = app.stream(event, disorder="10 min")
    page = app.features("page", key="page", source=visits, ttl="1 h", once="visit")
    page = page.over("10 s", "1 min", spent=hr.sum("spent"), times=hr.count(), twice=hr.max("spent * 2"))
    page = page.over("1 min", delay="5 s", before=hr.avg("spent")).last("visit").last("at", n=2)
    page = page.over("1 min", of=visits.where("spent % 5 < 2"), some=hr.count()).seen()
    page.vectors.to(app.topic(f"{topic}-told", partitions=1))
    flowing = Flowing(spark, broker, tmp_path, app)
    back = (0, 0, 7, 0, 30, 2)  # seconds that a row is older than the clock of its sender
    rows = [event(f"v{n}", f"p{n % 2}", DAY + timedelta(seconds=4 * n - back[n % 6]), n) for n in range(24)]
    again = [row for row in rows for _ in range(1 if row.spent % 7 else 2)]

    # when rows come, some of them twice, the interval being longer than the test
    with running(flowing, "10 min") as first:
        flowing.send(*again)
        until(lambda: len(flowing.rows(f"{topic}-told")) == len(rows), every=0.1)
        assert first.snapshot.batch == -1  # the batch has not ended: nothing waited for it

    # then each is told what the reference tells it, row by row
    with hr.testing.run(app, now=datetime(2026, 1, 1, tzinfo=UTC)) as t:
        t.send(*again)
        wanted = [wired(row.as_dict()) for row in t.read(f"{topic}-told")]
    assert sorted(flowing.rows(f"{topic}-told"), key=lambda row: row["spent"]) == wanted


def test_r5_fe12_windows_in_tiles_are_told_as_rows_arrive_and_equal_those_of_the_reference(
    spark: Spark, broker: Broker, topic: str, tmp_path: Path
) -> None:
    event, app = visit_on(topic), hr.App("site")
    visits = app.stream(event, disorder="30 min")
    page = app.features("page", key="page", source=visits, ttl="12 h", lateness="0 s")
    page = page.over(
        "1 h", "12 h", tiles=True, spent=hr.sum("spent"), times=hr.count(), least=hr.min("spent % 7"),
        begun=hr.first("visit"), ended=hr.last("visit"),
    ).seen()  # fmt: skip
    page.vectors.to(app.topic(f"{topic}-told", partitions=1))
    flowing = Flowing(spark, broker, tmp_path, app)
    back = (0, 0, 7, 0, 25, 22)  # minutes that a row is older than the clock of its sender; some are of one time
    rows = [event(f"v{n}", f"p{n % 2}", DAY + timedelta(minutes=11 * n - back[n % 6]), n) for n in range(80)]
    told = lambda: flowing.rows(f"{topic}-told")  # noqa: E731

    # when intervals end between the rows: what was told before is in tiles then
    with short_batches(spark), running(flowing, "2 s") as run:
        flowing.send(*rows[:50])
        until(lambda: counted(run).get("page", NOTHING).entered == 50, every=0.1)
        flowing.send(*rows[50:])
        until(lambda: len(told()) == 80, every=0.1)

    with hr.testing.run(app, now=datetime(2026, 1, 1, tzinfo=UTC)) as t:
        t.send(*rows)
        wanted = [wired(row.as_dict()) for row in t.read(f"{topic}-told")]
    assert sorted(told(), key=lambda row: row["spent"]) == wanted
    assert {row["times_1h"] for row in wanted[12:]} == {2, 3}


def wired(row: dict[str, Any]) -> dict[str, Any]:
    """As it stands in a record."""

    def wire(value: Any) -> Any:
        if isinstance(value, list):
            return [wire(one) for one in value]
        return rfc3339(value) if isinstance(value, datetime) else value

    return {name: wire(value) for name, value in row.items()}


def test_r5_a_flow_that_closes_windows_is_refused_with_the_reason(
    spark: Spark, broker: Broker, topic: str, tmp_path: Path
) -> None:
    app = hr.App("site")
    visits = app.stream(visit_on(topic), disorder="10 s")
    visits.window(hr.tumbling("1 min"), lateness="0 s").agg(n=hr.count()).named("minutes").to(app.topic(f"{topic}-out"))
    flowing = Flowing(spark, broker, tmp_path, app)

    with pytest.raises(ModeRefused, match="cannot run as realtime") as refused:
        flowing.job("realtime")

    assert "minutes closes windows, and the watermark stands still inside a real-time interval" in refused.value.why


def test_r5_an_interval_that_spark_does_not_allow_is_refused_once(
    spark: Spark, broker: Broker, topic: str, tmp_path: Path
) -> None:
    flowing = Flowing(spark, broker, tmp_path, declared(visit_on(topic), topic))

    run = Running(spark, flowing.job("realtime", pace=timedelta(seconds=2)), lambda _: None)

    assert run.wait(timedelta(seconds=60))
    assert isinstance(run.error, ModeRefused)
    assert run.error.what == "a real-time interval of 2 s is too short"
    assert run.snapshot.restarts == 0
