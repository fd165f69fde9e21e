"""The commit sink: a batch and its token are one transaction, whatever instant a query breaks at."""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka import Consumer, TopicPartition

import headrace as hr
from headrace.base.errors import CommitsLost, Fenced, GuaranteeRefused, StateBehind
from headrace.base.settings import Settings
from headrace.log import topics
from headrace.log.broker import Broker
from headrace.log.read import read
from headrace.spark import commits
from headrace.spark.commits import commits_topic
from headrace.spark.query import check_master, start
from headrace.spark.running import Running
from headrace.spark.session import Spark
from headrace.stack import stack as embedded
from tests.spark.flowing import Flowing, until, visit_on

DAY = datetime(2020, 1, 1, 10, tzinfo=UTC)
INSTANTS = ("before-rows", "after-rows", "after-token", "after-commit")


def visits(event: Any, first: int, last: int) -> list[Any]:
    return [event(f"v{n}", f"p{n % 3}", DAY + timedelta(seconds=n), n) for n in range(first, last)]


def flowing_on(spark: Spark, broker: Broker, topic: str, home: Path, **outputs: Any) -> Flowing:
    """A copy of the visits for each output, by its guarantee."""
    app = hr.App(topic)
    stream = app.stream(visit_on(topic), disorder="10 s")
    for name, guarantee in (outputs or {"out": "exactly-once"}).items():
        stream.to(app.topic(f"{topic}-{name}", partitions=1), guarantee=guarantee)
    return Flowing(spark, broker, home, app)


@contextmanager
def breaking(spark: Spark, instant: str) -> Iterator[None]:
    """Queries fail at this instant of every batch."""
    system = spark.session._jvm.java.lang.System  # type: ignore[union-attr]
    system.setProperty("headrace.failpoint", f"{instant}@0@throw")
    try:
        yield
    finally:
        system.clearProperty("headrace.failpoint")


def broken(flowing: Flowing, instant: str) -> None:
    """A run that breaks there. A transaction that a busy broker loses track of is begun again, as in a user's run."""
    with breaking(flowing.spark, instant):
        for _ in range(3):
            with pytest.raises(Exception, match=r"failpoint|transaction-expired") as ended:
                start(flowing.spark, flowing.job("history")).awaitTermination()
            if "transaction-expired" not in str(ended.value):
                break
    assert f"failpoint {instant}" in str(ended.value)


def take_over(broker: Broker, flow: str, *, run: str) -> Any:
    """As a driver of that run does; gives its producer."""
    producer = broker.producer({"transactional.id": flow})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(commits_topic(flow.split("/")[0]).name, json.dumps({"batch": 0, "run": run}), flow)
    producer.commit_transaction()
    return producer


def all_of(broker: Broker, topic: str) -> list[Any]:
    """Everything that was ever written, committed or not."""
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": topic, "isolation.level": "read_uncommitted"}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    try:
        found = consumer.consume(1, 10)
        return [*found, *consumer.consume(100_000, 1)]
    finally:
        consumer.close()


@pytest.mark.parametrize("instant", INSTANTS)
def test_a_batch_that_breaks_is_written_once_by_the_next_run(
    spark: Spark, broker: Broker, topic: str, tmp_path: Path, instant: str
) -> None:
    flowing = flowing_on(spark, broker, topic, tmp_path)
    event = flowing.event.cls
    flowing.send(*visits(event, 0, 50))

    broken(flowing, instant)
    assert len(flowing.rows(f"{topic}-out")) == (50 if instant == "after-commit" else 0)
    flowing.history()

    flowing.send(*visits(event, 50, 60))
    flowing.history()
    assert [row["spent"] for row in flowing.rows(f"{topic}-out")] == list(range(60))
    if instant == "after-rows":
        assert len(all_of(broker, f"{topic}-out")) > 60  # what the first run had written is there, but never to be seen


def test_three_guarantees_under_the_same_break(spark: Spark, broker: Broker, topic: str, tmp_path: Path) -> None:
    flowing = flowing_on(
        spark, broker, topic, tmp_path, once="exactly-once", least="at-least-once", most="at-most-once"
    )
    flowing.send(*visits(flowing.event.cls, 0, 50))

    broken(flowing, "after-rows")
    flowing.history()

    once, least, most = (
        [row["spent"] for row in flowing.rows(f"{topic}-{name}")] for name in ("once", "least", "most")
    )
    assert once == list(range(50))
    assert set(least) == set(range(50))
    assert len(least) > 50
    assert len(most) == len(set(most))
    assert 0 < len(most) < 50


def test_a_token_behind_the_open_transaction_of_another_flow_is_found(
    spark: Spark, broker: Broker, topic: str, tmp_path: Path
) -> None:
    """Readers of committed records stop at an open transaction, and our token stands after it."""
    flowing = flowing_on(spark, broker, topic, tmp_path)
    event = flowing.event.cls
    other = broker.producer({"transactional.id": f"{topic}-other"})
    other.init_transactions()
    with flowing.live() as query:
        query.batch(*visits(event, 0, 20))
        other.begin_transaction()
        other.produce(commits_topic(topic).name, json.dumps({"batch": 0, "run": "y"}), "other")
        assert other.flush(20) == 0
        with breaking(spark, "after-commit"), pytest.raises(Exception, match="failpoint after-commit"):
            query.batch(*visits(event, 20, 40))

    with flowing.live() as query:
        until(query.busy)
        threading.Event().wait(2)  # for what should not happen: that it goes on without knowing
        other.commit_transaction()
        query.settle()
        query.batch(*visits(event, 40, 50))

    assert [row["spent"] for row in flowing.rows(f"{topic}-out")] == list(range(50))


def test_state_that_begins_anew_writes_anew(spark: Spark, broker: Broker, topic: str, tmp_path: Path) -> None:
    """Batches of another checkpoint have the same numbers, and are not the same."""
    flowing = flowing_on(spark, broker, topic, tmp_path)
    flowing.send(*visits(flowing.event.cls, 0, 5))
    flowing.history()
    flowing.checkpoint.remove()
    flowing.history()
    assert [row["spent"] for row in flowing.rows(f"{topic}-out")] == [*range(5), *range(5)]


def test_a_copy_of_the_state_that_went_its_own_way_writes_nothing(
    spark: Spark, broker: Broker, topic: str, tmp_path: Path
) -> None:
    """Both have a batch of that number: the copy planned its own before the other was written."""
    flowing = flowing_on(spark, broker, topic, tmp_path / "one")
    event = flowing.event.cls
    flowing.send(*visits(event, 0, 10))
    flowing.history()
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    copied = Flowing(spark, broker, tmp_path / "two", flowing.app)
    flowing.send(*visits(event, 10, 15))
    broken(copied, "before-rows")
    flowing.send(*visits(event, 15, 20))
    flowing.history()

    with pytest.raises(StateBehind, match=r"has a batch \d+ that is not the one"):
        copied.history()
    flowing.send(*visits(event, 20, 25))
    flowing.history()
    assert [row["spent"] for row in flowing.rows(f"{topic}-out")] == list(range(25))


def test_a_topic_of_commits_that_was_deleted_stops_the_flow(
    spark: Spark, broker: Broker, topic: str, tmp_path: Path
) -> None:
    flowing = flowing_on(spark, broker, topic, tmp_path)
    flowing.send(*visits(flowing.event.cls, 0, 5))
    flowing.history()
    topics.delete(broker, commits_topic(topic).name)
    with pytest.raises(CommitsLost, match="was deleted"):
        flowing.history()
    topics.ensure(broker, commits_topic(topic))
    with pytest.raises(CommitsLost) as lost:
        flowing.history()
    assert str(flowing.checkpoint.commits_file) in lost.value.fix
    flowing.checkpoint.commits_file.unlink()
    flowing.history()
    assert len(flowing.rows(f"{topic}-out")) == 5


def test_a_driver_that_starts_its_query_again_does_not_take_the_flow_back(
    spark: Spark, broker: Broker, topic: str, tmp_path: Path
) -> None:
    """As one would that stood still while another took over, and then finds its query broken."""
    flowing = flowing_on(spark, broker, topic, tmp_path)
    event, job = flowing.event.cls, flowing.job("live")
    running = Running(spark, job, lambda _: None)
    try:
        flowing.send(*visits(event, 0, 10))
        until(lambda: len(flowing.rows(f"{topic}-out")) == 10, every=0.2)
        other = take_over(broker, job.id, run="another")
        with breaking(spark, "before-rows"):
            flowing.send(*visits(event, 10, 20))
            until(lambda: running.error)
        assert isinstance(running.error, Fenced)
        assert running.snapshot.restarts == 1  # so it was not the broker that told it
        other.begin_transaction()
        other.produce(f"{topic}-out", json.dumps({"spent": 10}))
        other.commit_transaction()
    finally:
        running.stop()
    assert [row["spent"] for row in flowing.rows(f"{topic}-out")] == list(range(11))


def test_a_driver_that_waited_for_its_first_record_does_not_take_the_flow_from_a_later_one(
    spark: Spark, broker: Broker, topic: str, tmp_path: Path
) -> None:
    flowing = flowing_on(spark, broker, topic, tmp_path)
    running = Running(spark, flowing.job("live"), lambda _: None)
    try:
        until(lambda: running.snapshot.state == "running")
        take_over(broker, flowing.job("live").id, run="another")
        flowing.send(*visits(flowing.event.cls, 0, 10))
        until(lambda: running.error)
        assert isinstance(running.error, Fenced)
    finally:
        running.stop()
    assert flowing.rows(f"{topic}-out") == []


def test_a_transaction_that_the_broker_gave_up_is_tried_again(
    spark: Spark, broker: Broker, topic: str, tmp_path: Path
) -> None:
    """To a driver it looks as if somebody took its id, and no other driver is there."""
    flowing = flowing_on(spark, broker, topic, tmp_path)
    event, seen = flowing.event.cls, list[str]()
    running = Running(spark, flowing.job("live"), lambda snapshot: seen.append(snapshot.error))
    try:
        flowing.send(*visits(event, 0, 10))
        until(lambda: len(flowing.rows(f"{topic}-out")) == 10, every=0.2)
        commits.take_over(broker, flowing.job("live").id)
        flowing.send(*visits(event, 10, 20))
        until(lambda: running.error or len(flowing.rows(f"{topic}-out")) == 20, every=0.2)
    finally:
        running.stop()
    assert running.error is None
    assert any("[transaction-expired]" in error and "the batch is tried again" in error for error in seen)
    assert [row["spent"] for row in flowing.rows(f"{topic}-out")] == list(range(20))


def test_a_master_whose_tasks_run_elsewhere_is_refused(
    spark: Spark, broker: Broker, topic: str, tmp_path: Path
) -> None:
    strict = flowing_on(spark, broker, topic, tmp_path)
    loose = flowing_on(spark, broker, f"{topic}-loose", tmp_path, out="at-least-once")
    for master in ("spark://host:7077", "local-cluster[2,1,1024]"):
        with pytest.raises(GuaranteeRefused, match="cannot be written exactly-once on") as refused:
            check_master(master, strict.job("live"))
        assert "at-least-once" in refused.value.fix
    check_master("local[2]", strict.job("live"))
    assert not loose.job("live").commits
    assert not strict.job("realtime").commits


@pytest.mark.timeout(240)
def test_a_broker_killed_in_the_middle_costs_nothing(
    spark: Spark, settings: Settings, topic: str, tmp_path: Path
) -> None:
    """Its own broker: this one dies."""
    home = tmp_path / "broker"
    up = lambda: embedded.up(home, settings.cache, parts=("kafka",), foreground=True)  # noqa: E731
    broker = Broker(bootstrap=up().kafka)
    try:
        flowing = flowing_on(spark, broker, topic, tmp_path)
        flowing.send(*visits(flowing.event.cls, 0, 2000))
        running = Running(spark, flowing.job("live", max_records=100), lambda _: None)
        try:
            until(lambda: running.snapshot.batch >= 3)
            (kafka,) = [part.pid for part in embedded.status(home) if part.name == "kafka"]
            os.kill(kafka or 0, signal.SIGKILL)
            until(lambda: not psutil.pid_exists(kafka or 0) or psutil.Process(kafka).status() == "zombie")
            assert up().kafka == broker.bootstrap
            flowing.send(*visits(flowing.event.cls, 2000, 2100))
            until(lambda: running.error or sum(1 for _ in read(broker, f"{topic}-out")) >= 2100, every=0.5)
        finally:
            running.stop()
        assert running.error is None
        assert sorted(row["spent"] for row in flowing.rows(f"{topic}-out")) == list(range(2100))
    finally:
        embedded.down(home)
