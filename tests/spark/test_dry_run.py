"""A dry run does everything once and leaves nothing; what was compiled ahead is taken, and nothing compiled twice."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.base.settings import load
from headrace.log.broker import Broker
from headrace.ops.run import job_of
from headrace.plan.modes import Mode
from headrace.plan.plan import build
from headrace.spark.dry_run import dry_run
from headrace.spark.query import prepare
from headrace.spark.session import Spark
from tests.spark import mapped
from tests.spark.flowing import Flowing, running, short_batches, until, visit_on


def visits_of(event: Any, count: int) -> list[Any]:
    now = datetime.now(UTC)
    return [event(f"v{n}", f"p{n % 3}", now + timedelta(milliseconds=n), n) for n in range(count)]


def page_on(topic: str) -> Any:
    @hr.event(topic=topic, key="page", time="at")
    class Page:
        page: str
        owner: str
        at: datetime

    return Page


def site(topic: str, event: Any) -> hr.App:
    app = hr.App(topic)
    visits = app.stream(event, disorder="1 min")
    visits.where("spent > 3").dedup("visit", within="1 h").to(app.topic(f"{topic}-once", partitions=1))
    return app


@pytest.mark.parametrize("mode", ["live", "realtime"])
def test_a_dry_run_reads_the_log_and_leaves_nothing(
    spark: Spark, broker: Broker, topic: str, tmp_path: Path, mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("PACE", timedelta(seconds=2)), ("ENOUGH", 9), ("MOST", 9)):  # until it has seen all
        monkeypatch.setattr(f"headrace.spark.dry_run.{name}", value)
    event = visit_on(topic)
    flowing, folder = Flowing(spark, broker, tmp_path, site(topic, event)), tmp_path / "dry"
    flowing.send(*visits_of(event, 9))
    seen: dict[int, int] = {}
    counted = lambda: str(spark.jvm.Counters.open(spark.session._jsc.sc()).value())  # noqa: E731
    before = counted()  # by whatever ran here before

    def over() -> bool:
        for query in spark.session.streams.active:
            seen.update((one["batchId"], one["numInputRows"]) for one in query.recentProgress)
        return sum(seen.values()) == 9

    with short_batches(spark):
        trouble = dry_run(spark, flowing.job(mode, pace=timedelta(seconds=2)), folder, over)

    assert trouble is None
    if mode == "realtime":  # a batch of history has ended before somebody could look
        assert sum(seen.values()) == 9
    assert not spark.session.streams.active
    assert flowing.rows(f"{topic}-once") == []
    assert not folder.exists()
    assert not flowing.checkpoint.folder.exists()
    assert counted() == before


def test_rows_of_tables_that_are_loaded_are_not_what_it_waits_for(
    spark: Spark, broker: Broker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("PACE", timedelta(seconds=2)), ("ENOUGH", 1), ("MOST", 9)):
        monkeypatch.setattr(f"headrace.spark.dry_run.{name}", value)
    page, event, app = page_on(f"{topic}-pages"), visit_on(topic), hr.App(topic)
    told = app.stream(event, disorder="1 min").enrich(app.table(page), on="page", prefix="page_")
    told.to(app.topic(f"{topic}-told", partitions=1), key="page")
    mine = load({"home": str(tmp_path), "kafka.bootstrap": broker.bootstrap}, root=tmp_path, env={})
    with hr.connect(app, mine) as client:
        client.send(*(page(f"p{n}", "ann", datetime.now(UTC)) for n in range(50)), *visits_of(event, 9))
    plan, seen = build(app), dict[int, int]()
    job = job_of(plan, plan.flows[0], mine, "realtime", pace=timedelta(seconds=2))

    def over() -> bool:
        for query in spark.session.streams.active:
            seen.update((one["batchId"], one["numInputRows"]) for one in query.recentProgress)
        return False

    with short_batches(spark):
        assert dry_run(spark, job, tmp_path / "dry", over) is None

    assert sum(seen.values()) == 50 + 9


def test_a_dry_run_that_fails_says_why_and_leaves_nothing(
    spark: Spark, broker: Broker, topic: str, tmp_path: Path
) -> None:
    event, app = visit_on(topic), hr.App(topic)
    visits = app.stream(event, disorder="1 min")
    kinds = visits.map(mapped.told, mapped.Told, on_error="stop")  # no visit has one
    kinds.to(app.topic(f"{topic}-out"), key="page")
    flowing, folder = Flowing(spark, broker, tmp_path, app), tmp_path / "dry"
    flowing.send(*visits_of(event, 3))

    trouble = dry_run(spark, flowing.job("live"), folder, lambda: False)

    assert trouble is not None
    assert trouble.code == "function-failed"
    assert not folder.exists()


def test_a_dry_run_ends_when_a_place_is_free(spark: Spark, broker: Broker, topic: str, tmp_path: Path) -> None:
    event = visit_on(topic)
    flowing = Flowing(spark, broker, tmp_path, site(topic, event))

    assert dry_run(spark, flowing.job("realtime", pace=timedelta(minutes=5)), tmp_path / "dry", lambda: True) is None
    assert not spark.session.streams.active


def test_what_was_compiled_ahead_is_taken_and_another_start_compiles_nothing_anew(
    spark: Spark, broker: Broker, topic: str, tmp_path: Path
) -> None:
    event = visit_on(topic)
    flowing, out = Flowing(spark, broker, tmp_path, site(topic, event)), f"{topic}-once"
    metrics = spark.session._jvm.org.apache.spark.metrics.source.CodegenMetrics
    compiled = lambda: metrics.METRIC_COMPILATION_TIME().getCount()  # noqa: E731

    # given a driver that has run a flow
    with short_batches(spark), running(flowing, "10 min"):
        flowing.send(*visits_of(event, 6))
        until(lambda: len(flowing.rows(out)) == 2, every=0.1)
    before = compiled()

    # when it starts it once more, compiled ahead
    prepare(spark, flowing.job("realtime", pace=timedelta(minutes=10)))
    assert len(spark.ahead) == 1
    with short_batches(spark), running(flowing, "10 min"):
        flowing.send(*visits_of(event, 8)[6:])
        until(lambda: {row["visit"] for row in flowing.rows(out)} == {f"v{n}" for n in range(4, 8)}, every=0.1)

    # then that was taken, and Java's compiler had nothing to do
    assert not spark.ahead
    assert compiled() == before
