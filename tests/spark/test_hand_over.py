"""The shuffle of real-time mode inside one process (jvm/HandOver.scala): rows go from task to task through a queue."""

from __future__ import annotations

import gc
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource

import headrace as hr
from headrace.log.broker import Broker
from headrace.spark.running import Running
from headrace.spark.session import Spark
from tests.spark.flowing import Flowing, running, short_batches, until, visit_on

DAY = datetime(2020, 1, 1, 10, tzinfo=UTC)
ROOM = 256
"""Rows that may wait for a task."""


def visits_of(event: Any, count: int) -> list[Any]:
    return [event(f"v{n}", f"p{n % 3}", DAY + timedelta(milliseconds=n), n) for n in range(count)]


def meetings(spark: Spark) -> int:
    """Shuffles whose tasks have not all ended. Of those that were stopped before they had all begun Spark knows when
    nothing refers to them any more: neither here, where the last run would still do so, nor there."""
    gc.collect()
    spark.session._jvm.System.gc()  # type: ignore[union-attr]
    return int(spark.session._jvm.org.apache.spark.shuffle.headrace.HandOver.open())


def test_rows_stay_in_order_also_when_more_come_than_may_wait(
    spark: Spark, broker: Broker, topic: str, tmp_path: Path
) -> None:
    event, app = visit_on(topic), hr.App("site")
    visits = app.stream(event, disorder="10 s")
    page = app.features("page", key="page", source=visits, ttl="1 h").over("1 s", times=hr.count())
    page.vectors.to(app.topic(f"{topic}-told", partitions=1))
    flowing = Flowing(spark, broker, tmp_path, app)
    rows, before = visits_of(event, 20 * ROOM), meetings(spark)
    read = lambda: flowing.rows(f"{topic}-told")  # noqa: E731

    def told() -> None:
        with short_batches(spark), running(flowing, "2 s") as run:
            flowing.send(*rows)
            until(lambda: len(read()) >= len(rows), every=0.2)
            until(lambda: run.snapshot.batch >= 1)  # the interval of these rows has ended

    told()
    until(lambda: meetings(spark) <= before, every=1)  # nothing is left of any interval
    for key in ("p0", "p1", "p2"):
        assert [row["visit"] for row in read() if row["page"] == key] == [row.visit for row in rows if row.page == key]


def test_a_task_that_fails_ends_those_that_give_it_rows(
    spark: Spark, broker: Broker, topic: str, tmp_path: Path
) -> None:
    event, app = visit_on(topic), hr.App("site")
    visits = app.stream(event, disorder="0 s")
    visits.dedup("visit", within="1 h").to(app.topic(f"{topic}-once", partitions=1))
    flowing, before = Flowing(spark, broker, tmp_path, app), meetings(spark)
    run = Running(spark, flowing.job("realtime", pace=timedelta(minutes=10)), lambda _: None)
    try:
        flowing.send(*visits_of(event, 4))
        until(lambda: len(flowing.rows(f"{topic}-once")) == 4, every=0.1)

        # when the broker takes no more from the sink, and more rows come than may wait before it
        small = ConfigEntry("max.message.bytes", "20", incremental_operation=AlterConfigOpType.SET)
        place = ConfigResource(ConfigResource.Type.TOPIC, f"{topic}-once", incremental_configs=[small])
        broker.ask(lambda admin: admin.incremental_alter_configs([place]))
        more = iter(visits_of(event, 100 * ROOM)[4:])
        while not run.wait(timedelta(seconds=0.5)):  # the sink learns of it with the next row
            flowing.send(*islice(more, 4 * ROOM))
    finally:
        run.stop()

    assert run.error is not None
    assert run.error.code == "record-too-large"
    del run
    until(lambda: meetings(spark) <= before, every=1)
