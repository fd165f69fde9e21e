"""Running, replaying and explaining an app: refusals, restarts, what is said and what is left alone."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.base.errors import CheckpointInUse, FunctionFailed, ModeRefused, PlanChanged, UsageError
from headrace.base.settings import Settings, load
from headrace.log.broker import Broker
from headrace.log.produce import Producer
from headrace.log.read import read
from headrace.log.topics import ensure, widths
from headrace.model.topic import Topic
from headrace.observe.snapshot import FlowSnapshot
from headrace.ops.checkpoints import find
from headrace.ops.explain import described, explain
from headrace.ops.replay import plan_replay, replay
from headrace.ops.run import run
from headrace.spark.session import Spark
from tests.spark import mapped
from tests.spark.flowing import short_batches, until, visit_on
from tests.spark.test_modes import visits

DAY = datetime(2020, 1, 1, 10, tzinfo=UTC)


@pytest.fixture
def at_home(broker: Broker, settings: Settings, tmp_path: Path) -> Settings:
    """A home of this test's own, on the tests' broker."""
    mine = {"home": str(tmp_path / "home"), "cache": str(settings.cache), "kafka.bootstrap": broker.bootstrap}
    return load(mine, root=tmp_path, env={})


def site(topic: str, size: str = "10 min", event: Any = None) -> hr.App:
    app = hr.App("site")
    windows = app.stream(event or visit_on(topic), disorder="0 s", idle="1 s")
    counted = windows.window(hr.hopping(size, every="5 min"), lateness="10 min").agg(times=hr.count())
    counted.to(app.topic(f"{topic}-out", partitions=1))
    return app


def send(broker: Broker, event: Any, rows: list[Any]) -> None:
    ensure(broker, Topic(name=event.__headrace__.topic, partitions=1))
    with Producer(broker, event, acks=1) as producer:
        producer.send_many(rows)


def test_an_app_runs_from_its_state_and_a_changed_one_is_refused_with_the_difference(
    spark: Spark, broker: Broker, at_home: Settings, topic: str
) -> None:
    event = visit_on(topic)
    rows = visits(event)[:60]
    send(broker, event, rows)
    said: list[str] = []
    seen: list[FlowSnapshot] = []

    with run(site(topic), at_home, spark=spark, say=said.append, tell=seen.append) as running:
        until(lambda: sum(s.rows for s in seen) == len(rows))
        (window,) = seen[-1].kept
        assert window.keys > 0
        assert window.rows == 0  # of the rows that it holds only sums are kept
        with pytest.raises(CheckpointInUse):
            run(site(topic), at_home, spark=spark)
        with pytest.raises(CheckpointInUse):  # nor is its state taken away under its feet
            run(site(topic), at_home, spark=spark, fresh=True)
    assert said == [f"made topics {topic}-out, {topic}.dead"]
    assert spark.healthy()  # it was not this run's own
    assert running.flows[0].snapshot.state == "stopped"
    assert [s.state for s in seen][:2] == ["running", "running"]
    with pytest.raises(PlanChanged) as changed:
        run(site(topic, "20 min"), at_home, spark=spark)
    before, after = changed.value.why.splitlines()[1:]
    assert before.startswith(f"-window-1: from {topic}, window hopping 10 min")
    assert after.startswith(f"+window-1: from {topic}, window hopping 20 min")

    # it goes on where it stopped
    send(broker, event, [event("next", "p0", DAY + timedelta(hours=3), 0)])
    seen.clear()
    with run(site(topic), at_home, spark=spark, tell=seen.append):
        until(lambda: sum(s.rows for s in seen) == 1)
    counts = {one.step: one for one in seen[-1].counts}
    assert counts[topic].entered == len(rows) + 1  # since its state began

    # and fresh begins anew
    seen.clear()
    with run(site(topic, "20 min"), at_home, spark=spark, fresh=True, tell=seen.append):
        until(lambda: sum(s.rows for s in seen) == len(rows) + 1)
    assert all(one.missing == 0 for one in seen[-1].counts)


def test_twins_write_every_row_under_one_id_and_one_goes_on_without_the_other(
    spark: Spark, broker: Broker, at_home: Settings, topic: str
) -> None:
    event, app = visit_on(topic), hr.App("site")
    page = app.features("page", key="page", source=app.stream(event, disorder="0 s"), ttl="1 h")
    page.over("1 min", times=hr.count()).vectors.to(app.topic(f"{topic}-out", partitions=1))
    visit = lambda n: event(f"v{n}", "p", DAY + timedelta(seconds=n), n)  # noqa: E731
    send(broker, event, [visit(n) for n in range(3)])
    seen: list[FlowSnapshot] = []

    def told() -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for message in read(broker, f"{topic}-out"):
            found.setdefault(dict(message.headers())["hr-id"], []).append(json.loads(message.value())["times_1min"])
        return found

    with (
        short_batches(spark),
        run(app, at_home, mode="realtime", twins=2, interval="2 s", spark=spark, tell=seen.append) as running,
    ):
        until(lambda: sorted(map(len, told().values())) == [2, 2, 2], every=0.1)
        assert sorted(told().values()) == [[1, 1], [2, 2], [3, 3]]  # and both say the same
        first, second = running.flows
        first.stop()
        send(broker, event, [visit(3)])
        until(lambda: [4] in told().values(), every=0.1)
        assert second.snapshot.state == "running"
    with (
        short_batches(spark),
        run(app, at_home, mode="realtime", twin=2, interval="2 s", spark=spark, tell=seen.append) as running,
    ):
        assert [flow.snapshot.name for flow in running.flows] == [f"{topic}~2"]
        send(broker, event, [visit(4)])
        until(lambda: [5] in told().values(), every=0.1)  # it goes on where it was
    assert {s.name for s in seen} == {topic, f"{topic}~2"}
    kept = [one.name for one in find(at_home)]
    assert kept == [f"site/v1/{topic}", f"site/v1/{topic}~2"]


def test_twins_that_start_together_end_their_intervals_apart(
    spark: Spark, broker: Broker, at_home: Settings, topic: str
) -> None:
    every, ended = timedelta(seconds=8), dict[int, datetime]()
    app = hr.App("site")
    app.stream(visit_on(topic), disorder="0 s").to(app.topic(f"{topic}-out", partitions=1))
    ensure(broker, Topic(name=topic, partitions=1))

    def seen(snapshot: FlowSnapshot) -> None:
        if snapshot.batch >= 1:  # the first may have been a short one
            ended.setdefault(snapshot.twin, snapshot.at)

    with short_batches(spark), run(app, at_home, mode="realtime", twins=2, interval="8 s", spark=spark, tell=seen):
        until(lambda: len(ended) == 2, every=0.1)

    apart = abs(ended[1] - ended[2]) % every
    assert every / 4 < apart < every * 3 / 4


@pytest.mark.parametrize(
    ("mode", "asked", "why"),
    [
        ("live", {"twins": 2}, "twins are for real time"),
        ("live", {"twin": 1}, "twins are for real time"),
        ("realtime", {"twins": 0}, "none"),
        ("realtime", {"twin": 0}, "no twin 0"),
        ("realtime", {"twins": 2, "twin": 2}, "both"),
    ],
)
def test_twins_that_make_no_sense_are_refused(
    at_home: Settings, topic: str, mode: Any, asked: dict[str, int], why: str
) -> None:
    with pytest.raises(UsageError, match=why):
        run(site(topic), at_home, mode=mode, **asked)  # type: ignore[arg-type]


def test_batches_begin_at_the_pace_that_was_asked_for(
    spark: Spark, broker: Broker, at_home: Settings, topic: str
) -> None:
    send(broker, visit_on(topic), [])
    seen: list[FlowSnapshot] = []
    with run(site(topic), at_home, interval="7 s", spark=spark, tell=seen.append):
        until(lambda: any(one.state == "running" for one in seen), every=0.1)
        (query,) = spark.session.streams.active
        assert query._jsq.streamingQuery().trigger().toString() == "ProcessingTimeTrigger(7000)"
    with pytest.raises(ModeRefused, match="less than nothing"):
        run(site(topic), at_home, interval="-1 s", spark=spark)


def test_a_replay_writes_whole_results_from_its_start_on_into_topics_of_its_own(
    spark: Spark, broker: Broker, at_home: Settings, topic: str
) -> None:
    event = visit_on(topic)
    send(broker, event, visits(event)[:60])
    start = DAY + timedelta(minutes=30)
    chosen = plan_replay(site(topic), into="again", start=start, until=None)
    assert chosen.outputs == (f"{topic}-out.again",)
    assert chosen.read_from == start - timedelta(minutes=20)  # size and lateness: as far back as state reaches

    with replay(chosen, at_home, spark=spark) as running:
        running.wait()

    assert f"{topic}-out" not in widths(broker)  # the live version's are not touched
    found = results(broker, f"{topic}-out.again")
    with hr.testing.run(site(topic)) as t:
        t.send(*visits(event)[:60])
        t.end()
        whole = {(r.page, r.window_start, r.times) for r in t.read(f"{topic}-out") if r.window_end > start}
    assert found == whole


def results(broker: Broker, topic: str) -> set[tuple[str, datetime, int]]:
    rows = [json.loads(message.value()) for message in read(broker, topic)]
    assert {row["kind"] for row in rows} == {"final"}
    return {(row["page"], datetime.fromisoformat(row["window_start"]), row["times"]) for row in rows}


def test_a_flow_whose_worker_dies_is_started_again_and_loses_nothing(
    spark: Spark, broker: Broker, at_home: Settings, topic: str, tmp_path: Path
) -> None:
    event = visit_on(topic)
    app = hr.App("site")
    app.stream(event, disorder="0 s").map(mapped.dies_once, mapped.Told).to(app.topic(f"{topic}-out"), key="page")
    send(broker, event, [event("v", str(tmp_path / "died"), DAY, 1)])
    seen: list[FlowSnapshot] = []

    with run(app, at_home, spark=spark, tell=seen.append) as running:
        until(lambda: any(s.rows for s in seen))

    assert running.flows[0].error is None
    assert "restarting" in [s.state for s in seen]
    assert seen[-1].restarts == 1
    assert [(one.entered, one.used) for one in seen[-1].counts] == [(1, 1), (1, 1)]  # the broken batch is not counted


def test_an_error_that_trying_again_cannot_cure_ends_the_run(
    spark: Spark, broker: Broker, at_home: Settings, topic: str
) -> None:
    event = visit_on(topic)
    app = hr.App("site")
    fails = app.stream(event, disorder="0 s").map(mapped.fussy, mapped.Everything, on_error="stop")
    fails.to(app.topic(f"{topic}-out"), key="page")
    send(broker, event, visits(event)[:1])

    with run(app, at_home, spark=spark) as running, pytest.raises(FunctionFailed, match="fussy failed on"):
        running.wait()


def test_a_mode_that_a_flow_does_not_allow_is_refused_before_anything_starts(at_home: Settings, topic: str) -> None:
    with pytest.raises(ModeRefused, match="cannot run as realtime"):
        run(site(topic), at_home, mode="realtime")


def test_explain_knows_the_partitions_of_a_topic_that_is_there(at_home: Settings, broker: Broker, topic: str) -> None:
    ensure(broker, Topic(name=topic, partitions=3))

    assert f"topic {topic}, 3 partitions" in explain(site(topic), at_home)
    (flow,) = described(site(topic), at_home)
    assert flow["partitions"] == {topic: 3}
    assert flow["modes"] == {
        "live": "yes",
        "history": "yes",
        "realtime": [
            "window-1 closes windows, and the watermark stands still inside a real-time interval (rule R5)",
        ],
    }


def test_explain_needs_no_broker(tmp_path: Path, topic: str) -> None:
    assert f"topic {topic}, disorder" in explain(site(topic), load({"home": str(tmp_path)}, root=tmp_path, env={}))
