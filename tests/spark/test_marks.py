"""Marks, from a producer to a window's close on Spark (rule T7)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import headrace as hr
from headrace.log.broker import Broker
from headrace.log.produce import Producer
from headrace.spark.session import Spark
from tests.spark.flowing import Flowing

TEN = datetime(2020, 1, 1, 10, tzinfo=UTC)


def minutes_of(topic: str) -> tuple[Any, hr.App]:
    @hr.event(topic=topic, key="page", time="at")
    class Visit:
        page: str
        at: datetime

    app = hr.App("site")
    minutes = app.stream(Visit, disorder=hr.marked()).window(hr.tumbling("1 min"), lateness="0 s").agg(n=hr.count())
    minutes.to(app.topic(f"{topic}-out", partitions=1))
    return Visit, app


def test_t7_windows_close_by_marks_alone_and_no_row_is_late(
    spark: Spark, broker: Broker, topic: str, tmp_path: Path
) -> None:
    visit, app = minutes_of(topic)
    flowing = Flowing(spark, broker, tmp_path, app, partitions=2)
    told = lambda: [(row["window_start"][11:16], row["n"]) for row in flowing.rows(f"{topic}-out")]  # noqa: E731

    with flowing.live() as live, Producer(broker, visit, acks=1, spread="round-robin") as producer:

        def send(*seconds: int) -> None:
            producer.send_many(visit("news", TEN + timedelta(seconds=s)) for s in seconds)

        def mark(seconds: int, **where: int) -> None:
            producer.mark(TEN + timedelta(seconds=seconds), **where)
            producer.flush()
            live.settle()

        # given rows far apart, which would close windows of a stream of bounded disorder
        send(0, 300, 30)
        mark(0)
        send(50)
        mark(60, partition=0)
        assert told() == []  # the other partition has promised nothing

        mark(60, partition=1)
        assert told() == [("10:00", 3)]

        send(61)
        mark(301)
        assert told() == [("10:00", 3), ("10:01", 1)]
        assert live.counts()["window-1"].late == 0
