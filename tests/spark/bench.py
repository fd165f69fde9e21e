"""A flow between topics of its own, filled, run and compared with the reference on the schedule that was recorded."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import headrace as hr
from headrace.log.broker import Broker
from headrace.log.produce import Producer
from headrace.model.topic import Topic
from headrace.observe.snapshot import FlowSnapshot
from headrace.ops.run import make_topics
from headrace.plan.modes import Mode
from headrace.plan.plan import Plan, build
from headrace.reference.engine import Engine
from headrace.spark.checkpoint import Checkpoint
from headrace.spark.job import Job
from headrace.spark.query import start
from headrace.spark.running import Running
from headrace.spark.session import Spark
from tests.spark.flowing import until
from tests.spark.recorded import Written, expected, schedule, written

PARTITIONS = 3


class Bench:
    """Fill, run, compare."""

    def __init__(self, spark: Spark, broker: Broker, home: Path, app: hr.App) -> None:
        self.spark, self.broker, self.home = spark, broker, home
        self.plan: Plan = build(app)
        (self.flow,) = self.plan.flows
        read = [Topic(name=topic, partitions=PARTITIONS) for topic in self.flow.topics]
        written = [topic for topic in app.topics if topic.name not in self.flow.topics]
        make_topics(broker, self.plan, [*read, *written], lambda _: None)
        self.checkpoint = Checkpoint.of(home, self.plan, self.flow)

    def fill(self, rows: Iterable[Any]) -> None:
        by_type: dict[type, list[Any]] = {}
        for row in rows:
            by_type.setdefault(type(row), []).append(row)
        for event, some in by_type.items():
            with Producer(self.broker, event, acks=1) as producer:
                producer.send_many(some)

    def job(self, mode: Mode, max_records: int | None = None) -> Job:
        return Job(
            plan=self.plan, flow=self.flow, mode=mode, broker=self.broker, checkpoint=self.checkpoint,
            max_records=max_records,
        )  # fmt: skip

    def history(self, max_records: int | None = None) -> None:
        query = start(self.spark, self.job("history", max_records))
        assert query.awaitTermination(100)

    def live(self, max_records: int, *, rows: int, timed: bool = True) -> None:
        """Runs live until it has read so many rows and, if `timed`, has a watermark; then it is stopped."""
        seen: list[FlowSnapshot] = []
        running = Running(self.spark, self.job("live", max_records), seen.append)
        read = lambda: sum(snapshot.rows for snapshot in seen)  # noqa: E731
        until(lambda: read() >= rows and (not timed or running.snapshot.watermark is not None), within=60, every=0.05)
        running.stop()
        assert running.error is None
        assert all(counts.missing == 0 for counts in running.snapshot.counts)

    def check(self, *, stopped: bool = False) -> Engine:
        """Equal to the letter: results, corrections, retractions, late rows, duplicates, ids, keys, times.

        A run that was `stopped` may have written its last batch, though Spark has not noted it.
        """
        engine = Engine(self.plan, self.flow)
        done: list[Written] = []
        for batch, committed in schedule(self.checkpoint.spark, self.flow, self.broker):
            engine.batch(batch)
            if committed:
                done = expected(engine.records, self.flow)
        found = written(self.broker, *{e.target.name for e in self.flow.exits})
        if stopped:
            assert found in (done, expected(engine.records, self.flow))
        else:
            assert found == done, _difference(found, done)
        return engine


def _difference(found: list[Written], wanted: list[Written]) -> str:
    """The first records of either side that the other lacks."""
    missing, extra = sorted(set(wanted) - set(found)), sorted(set(found) - set(wanted))
    lines = [f"{len(found)} records, not {len(wanted)}: {len(missing)} missing, {len(extra)} that should not be"]
    return "\n".join(lines + [f"- {one}" for one in missing[:5]] + [f"+ {one}" for one in extra[:5]])
