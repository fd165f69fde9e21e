"""One declaration, three speeds: history, live and real-time write the same records, under the same ids."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.base.errors import ModeRefused
from headrace.log.broker import Broker
from headrace.log.read import read
from headrace.plan.modes import MODES, Mode
from headrace.spark.checkpoint import Checkpoint
from headrace.spark.job import Job, Span
from headrace.spark.running import Running
from headrace.spark.session import Spark
from tests.spark.flowing import Flowing, until, visit_on

DAY = datetime(2020, 1, 1, 10, tzinfo=UTC)


def visits(event: Any) -> list[Any]:
    """Some twice, an hour long."""
    rows = [event(f"v{n}", f"p{n % 3}", DAY + timedelta(minutes=n), n % 4) for n in range(60)]
    return rows + rows[10:20]


def test_the_same_declaration_writes_the_same_records_at_every_speed(
    spark: Spark, broker: Broker, topic: str, tmp_path: Path
) -> None:
    """Three runs with states of their own write into the same topics: every record is there three times."""
    app, event = hr.App("site"), visit_on(topic)
    stream = app.stream(event, disorder="10 s")
    stream.where("spent > 0").select("visit, page, spent * 2 as twice").to(app.topic(f"{topic}-out"), key="page")
    stream.dedup("visit", within="2 h").select("visit, page, spent as twice").to(app.topic(f"{topic}-out"), key="page")
    flowing = Flowing(spark, broker, tmp_path, app)
    rows = visits(event)
    flowing.send(*rows)
    each = len([row for row in rows if row.spent]) + len({row.visit for row in rows})

    for n, mode in enumerate(MODES, 1):
        running = Running(spark, with_state(flowing, mode, tmp_path / mode), lambda _: None)
        until(lambda: sum(1 for _ in read(broker, f"{topic}-out")) == each * n, every=0.2)  # noqa: B023
        running.stop()
        assert running.error is None

    ids = Counter((dict(m.headers())["hr-id"], m.key(), m.value()) for m in read(broker, f"{topic}-out"))
    assert set(ids.values()) == {3}


def with_state(flowing: Flowing, mode: Mode, folder: Path, span: Span = Span()) -> Job:  # noqa: B008
    pace = timedelta(minutes=5 if mode == "realtime" else 0)
    return replace(flowing.job(mode, span=span, pace=pace), checkpoint=Checkpoint(folder=folder))


def test_history_reads_a_span_and_emits_from_a_moment_on(
    spark: Spark, broker: Broker, topic: str, tmp_path: Path
) -> None:
    app, event = hr.App("site"), visit_on(topic)
    windows = app.stream(event, disorder="0 s").key_by("spent").window(hr.tumbling("10 min"), lateness="0 s")
    windows.agg(times=hr.count()).to(app.topic(f"{topic}-out", partitions=1))
    flowing = Flowing(spark, broker, tmp_path, app)
    flowing.send(*visits(event)[:60])

    at = lambda minute: DAY + timedelta(minutes=minute)  # noqa: E731
    flowing.history(Span(start=at(10), until=at(45), emit_from=at(20)))

    rows = flowing.rows(f"{topic}-out")
    assert sorted({row["window_start"][14:16] for row in rows}) == ["20", "30", "40"]
    assert sum(row["times"] for row in rows) == 25  # 20 to 44: a record at the bound is outside


def test_w7_processing_time_windows_follow_the_clock_live_and_are_refused_in_history(
    spark: Spark, broker: Broker, topic: str, tmp_path: Path
) -> None:
    app, event = hr.App("site"), visit_on(topic)
    stream = app.stream(event, disorder="0 s")
    by_clock = stream.window(hr.tumbling("1 s", time="processing")).agg(times=hr.count()).named("seconds")
    by_clock.to(app.topic(f"{topic}-clock", partitions=1))
    by_event = stream.window(hr.tumbling("1 h"), lateness="0 s").agg(times=hr.count())
    by_event.to(app.topic(f"{topic}-event", partitions=1))
    flowing = Flowing(spark, broker, tmp_path, app)
    with pytest.raises(ModeRefused) as refused:
        flowing.job("history")
    assert refused.value.why == "seconds follows processing time, and history has none (rule W7)"

    before = datetime.now(UTC)
    with flowing.live() as query:
        query.batch(*visits(event))
        until(lambda: sum(row["times"] for row in flowing.rows(f"{topic}-clock")) == 70, every=0.2)
        counts = query.counts()["seconds"]

    rows = flowing.rows(f"{topic}-clock")
    assert {row["kind"] for row in rows} == {"final"}
    assert all(before <= datetime.fromisoformat(row["window_end"]) <= datetime.now(UTC) for row in rows)
    assert (counts.entered, counts.late, counts.missing) == (70, 0, 0)
