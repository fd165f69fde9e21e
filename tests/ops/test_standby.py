"""Standing by: who waits has done everything once, takes the place of the first that ends, and goes on where it was."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import headrace as hr
from headrace.base.errors import ModeRefused, PlanChanged
from headrace.base.settings import Settings, load
from headrace.log.broker import Broker
from headrace.log.produce import Producer
from headrace.log.read import read
from headrace.log.topics import ensure
from headrace.model.topic import Topic
from headrace.ops.run import run
from headrace.ops.standby import free_place, stand_by
from headrace.plan.plan import build
from headrace.spark import query
from headrace.spark.checkpoint import Checkpoint
from headrace.spark.session import Spark
from tests.base.weighing import weight
from tests.spark.driving import Driver, driver, jvm_of
from tests.spark.flowing import short_batches, until, visit_on
from tests.spark.test_restart import write_app
from tests.stack.pausing import standing_still

APP = """
site = hr.App("{topic}")
site.stream(Visit, disorder="1 min").dedup("visit", within="1 h").to(site.topic("{topic}-once", partitions=1))
"""
PATIENT = 400.0
"""Seconds: it yields to all others, and other tests run beside this one."""
TWINS = ("--realtime", "--interval", "6 s", "--twins", "2", "--standby")


def visits(broker: Broker, topic: str) -> list[str]:
    """Those that were told, each as often as it was."""
    return sorted(json.loads(message.value())["visit"] for message in read(broker, f"{topic}-once"))


def send(broker: Broker, visit: Any, *numbers: int) -> None:
    with Producer(broker, visit, acks=1) as producer:
        producer.send_many(visit(f"v{n}", "p", datetime.now(UTC) + timedelta(milliseconds=n), n) for n in numbers)


def said(stood: Driver, *words: str) -> bool:
    """Whether it has said all of these."""
    return all(any(word in line for line in stood.err) for word in words)


def test_a_place_is_all_flows_of_a_twin_and_the_first_that_is_free_is_taken(tmp_path: Path, topic: str) -> None:
    settings, app = load({"home": str(tmp_path)}, root=tmp_path, env={}), hr.App("site")
    for name in (f"{topic}-a", f"{topic}-b"):
        app.stream(visit_on(name), disorder="1 min").where("spent > 0").to(app.topic(f"{name}-out"))
    plan = build(app)
    assert len(plan.flows) == 2

    first, second = free_place(plan, settings, (1, 2)), free_place(plan, settings, (1, 2))
    assert first is not None
    assert second is not None
    assert (first.twin, second.twin) == (1, 2)
    assert free_place(plan, settings, (1, 2)) is None
    first.held[0].close()  # one of its flows still runs
    assert free_place(plan, settings, (1, 2)) is None
    first.held[1].close()
    again = free_place(plan, settings, (1, 2))  # what was taken of it by the way was given back
    assert again is not None
    assert again.twin == 1
    for place in (again, second):
        place.give_back()


def test_what_could_not_run_does_not_stand_by(broker: Broker, tmp_path: Path, topic: str) -> None:
    settings = load({"home": str(tmp_path), "kafka.bootstrap": broker.bootstrap}, root=tmp_path, env={})

    def site(spent: int) -> hr.App:
        app = hr.App("site")
        app.stream(visit_on(topic), disorder="1 min").where(f"spent > {spent}").to(app.topic(f"{topic}-out"))
        return app

    (flow,) = build(site(0)).flows
    held = Checkpoint.of(settings.home, build(site(0)), flow).open(flow)
    with pytest.raises(PlanChanged):
        stand_by(site(1), settings)
    held.close()
    windows = hr.App("windows")
    counted = windows.stream(visit_on(topic), disorder="1 min").window(hr.tumbling("1 min"), lateness="0 s")
    counted.agg(times=hr.count()).to(windows.topic(f"{topic}-counts"))
    with pytest.raises(ModeRefused):
        stand_by(windows, settings, mode="realtime")


@contextmanager
def twin_of_this_process(settings: Settings, spark: Spark, app: hr.App) -> Iterator[None]:
    with short_batches(spark), run(app, settings, mode="realtime", twin=1, interval="6 s", spark=spark) as running:
        yield
        assert [flow.error for flow in running.flows] == [None]


@pytest.mark.timeout(900)
def test_a_driver_that_stood_by_takes_over_from_a_twin_that_was_killed(
    spark: Spark, broker: Broker, settings: Settings, topic: str, tmp_path: Path
) -> None:
    # given a twin that runs, another in a process of its own, and a third driver: no place is left for it
    found = write_app(tmp_path, topic, APP)
    visit = found["Visit"]
    mine = load({"home": str(tmp_path / "home"), "kafka.bootstrap": broker.bootstrap}, root=tmp_path, env={})
    ensure(broker, Topic(name=topic, partitions=1))
    command = ("run", "visiting:site", *TWINS)
    with twin_of_this_process(mine, spark, found["site"]), driver(tmp_path, settings, broker, *command) as second:
        second.until(lambda: said(second, f"{topic}~2: running"))
        send(broker, visit, 1)
        until(lambda: visits(broker, topic) == ["v1"] * 2, every=0.1)
        with driver(tmp_path, settings, broker, *command) as third:
            third.until(lambda: said(third, "stands by for"), within=PATIENT)
            assert said(third, "a dry run")
            assert not said(third, "the dry run ended")
            waiting = weight(jvm_of(third.process.pid))
            assert waiting in (15, None)
            send(broker, visit, 2)
            until(lambda: len(visits(broker, topic)) == 4, every=0.1)
            # of the third nothing came, neither now nor when it ran dry
            assert visits(broker, topic) == ["v1", "v1", "v2", "v2"]

            # when the second's JVM is killed
            os.kill(int(jvm_of(second.process.pid)), 9)

            # then the third goes on in its place: what the twin had seen is no news to it, and what comes it tells
            third.until(lambda: said(third, f"takes the place of {topic}~2", f"{topic}~2: running"))
            send(broker, visit, 3)
            until(lambda: visits(broker, topic).count("v3") == 2, every=0.1)
            assert set(visits(broker, topic)) == {"v1", "v2", "v3"}
            if waiting is not None:
                until(lambda: weight(jvm_of(third.process.pid)) == 0, every=0.1)  # once it has caught up
            logs = {log.name for log in (tmp_path / "home" / "logs").iterdir()}
            assert {f"spark-{topic}~2.log", f"spark-{topic}~2.log.1"} <= logs
            assert not any("standby" in log for log in logs)
            assert second.ended() != 0
            assert third.interrupt() == 0


@dataclass(frozen=True)
class Up:
    """A Spark that comes up at once: the tests' own."""

    spark: Spark
    launched: Any

    def ready(self) -> Spark:
        return self.spark

    def give_up(self) -> None:
        """It is the tests' to end."""


def test_what_it_compiled_ahead_is_what_it_runs_though_the_broker_be_away_for_a_moment(
    spark: Spark, broker: Broker, settings: Settings, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given both places taken, and a driver that stands by
    mine = load({"home": str(tmp_path), "kafka.bootstrap": broker.bootstrap}, root=tmp_path, env={})
    ensure(broker, Topic(name=topic, partitions=1))
    app = hr.App(topic)
    app.stream(visit_on(topic), disorder="1 min").dedup("visit", within="1 h").to(app.topic(f"{topic}-once"))
    plan, told, compiled = build(app), list[str](), list[str]()
    places = [free_place(plan, mine, (twin,)) for twin in (1, 2)]
    (log := tmp_path / "spark.log").touch()
    up = Up(replace(spark, log=log), SimpleNamespace(process=SimpleNamespace(pid=os.getpid())))
    monkeypatch.setattr("headrace.ops.standby.begin", lambda *_, **__: up)
    monkeypatch.setattr("headrace.ops.standby.dry_run", lambda *_: None)
    compiling = query._records
    monkeypatch.setattr(query, "_records", lambda spark, job: compiled.append(str(job.twin)) or compiling(spark, job))  # type: ignore[func-returns-value]
    with ThreadPoolExecutor() as threads, short_batches(spark):
        taking = threads.submit(stand_by, app, mine, mode="realtime", twins=2, interval="6 s", usual=0, say=told.append)
        until(lambda: taking.done() or any("stands by for" in line for line in told))
        assert compiled == ["1", "2"]

        # when the second place is free, and the broker away for a moment
        assert places[1] is not None
        with standing_still(settings):
            places[1].give_back()
            until(lambda: taking.done() or any("cannot begin yet" in line for line in told))
        running = taking.result()
        running.owns_spark = False
        with running:
            until(lambda: running.flows[0].snapshot.state == "running")

        # then that is what runs, and nothing is left of the other place
        assert compiled == ["1", "2"]
        assert running.flows[0].snapshot.twin == 2
        assert spark.ahead == {}
    assert places[0] is not None
    places[0].give_back()


@pytest.mark.timeout(900)
def test_a_live_flow_goes_on_exactly_once_with_the_driver_that_stood_by(
    broker: Broker, settings: Settings, topic: str, tmp_path: Path
) -> None:
    visit = write_app(tmp_path, topic, APP)["Visit"]
    ensure(broker, Topic(name=topic, partitions=1))
    command = ("run", "visiting:site", "--standby")
    with driver(tmp_path, settings, broker, *command) as first:
        first.until(lambda: said(first, ": running"))
        with driver(tmp_path, settings, broker, *command) as second:
            send(broker, visit, *range(5))
            second.until(lambda: said(second, "stands by for"), within=PATIENT)
            until(lambda: len(visits(broker, topic)) == 5, every=0.1)
            # when its Python is killed: its JVM may live a moment longer
            first.process.kill()
            send(broker, visit, *range(3, 8))

            second.until(lambda: len(visits(broker, topic)) == 8, every=0.1)
            assert visits(broker, topic) == [f"v{n}" for n in range(8)]
            assert second.interrupt() == 0
    assert visits(broker, topic) == [f"v{n}" for n in range(8)]
