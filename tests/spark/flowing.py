"""A flow on a broker of its own topics, fed batch by batch: what a test of the compiled plan gives and reads."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import headrace as hr
from headrace.base.duration import duration
from headrace.base.settings import Settings
from headrace.log import dead
from headrace.log.broker import Broker
from headrace.log.codec import Codec
from headrace.log.read import read
from headrace.model.topic import Topic
from headrace.observe.snapshot import Counts, FlowSnapshot
from headrace.ops.run import make_topics
from headrace.ops.stores import stores_of
from headrace.plan.modes import Mode
from headrace.plan.plan import build
from headrace.spark import profile
from headrace.spark.checkpoint import Checkpoint
from headrace.spark.deciding import deciding
from headrace.spark.job import Job, Span
from headrace.spark.query import start
from headrace.spark.running import Running
from headrace.spark.session import Spark
from headrace.spark.storing import storing

TIMEOUT = 100
"""Seconds; the machine may be busy."""


def visit_on(topic: str) -> Any:
    """An event of that topic: a visit of a page, and what was spent there."""

    @hr.event(topic=topic, key="page", time="at", id="visit")
    class Visit:
        visit: str
        page: str
        at: datetime
        spent: int

    return Visit


class Flowing:
    """An app of one flow: its topics made, its source topic with one partition unless said."""

    def __init__(
        self,
        spark: Spark,
        broker: Broker,
        home: Path,
        app: hr.App,
        *,
        partitions: int = 1,
        settings: Settings | None = None,
    ) -> None:
        """`settings` say where its stores are, if it has any."""
        self.spark, self.broker, self.app = spark, broker, app
        self.plan = build(app)
        (self.flow,) = self.plan.flows
        (source,) = self.flow.by_topic
        self.event = source.node.event  # type: ignore[union-attr]
        self.topic: str = self.event.topic
        outputs = [topic for topic in app.topics if topic.name != self.topic]
        wanted = [Topic(name=self.topic, partitions=partitions), *outputs]
        make_topics(broker, self.plan, wanted, lambda _: None)
        self.checkpoint = Checkpoint.of(home, self.plan, self.flow)
        self.stores = () if settings is None else stores_of(self.flow, settings)
        self._terms: dict[int, dict[str, int]] = {}

    # -- in

    def send(self, *events: Any, partition: int = 0) -> None:
        """All in one record batch, so that a query reads all of them or none."""
        codec = Codec(type(events[0]))
        self.produce((*codec.encode(event), partition) for event in events)

    def produce(self, records: Iterable[tuple[bytes | None, bytes | None, Any, int, int]]) -> None:
        """Records as they are: key, value, headers, time in ms, partition."""
        client = self.broker.producer({"linger.ms": 200, "message.max.bytes": 20_000_000})
        for key, value, headers, at, partition in records:
            client.produce(self.topic, value, key, partition, headers=headers, timestamp=at)
        assert client.flush(TIMEOUT) == 0

    # -- running

    def job(self, mode: Mode, **more: Any) -> Job:
        return Job(
            plan=self.plan,
            flow=self.flow,
            mode=mode,
            broker=self.broker,
            checkpoint=self.checkpoint,
            stores=self.stores,
            **more,
        )

    def history(self, span: Span = Span(), **more: Any) -> FlowSnapshot:  # noqa: B008
        """Over all that is there, watched as a user's run is; raises what stopped it."""
        running = Running(self.spark, self.job("history", span=span, **more), lambda _: None)
        until(lambda: running.snapshot.state in ("stopped", "failed", "restarting"))
        if running.error is not None:
            raise running.error
        assert running.snapshot.state == "stopped", running.snapshot.error
        return running.snapshot

    @contextmanager
    def live(self) -> Iterator[Live]:
        job = self.job("live")
        with (
            storing(self.spark, job.stores, job.id, job.checkpoint.staged),
            deciding(self.spark, job.broker, job.flow, str(job.checkpoint.spark)),
        ):
            query = start(self.spark, job)
            try:
                yield Live(self, query)
            finally:
                query.stop()

    # -- out

    def rows(self, topic: str) -> list[dict[str, Any]]:
        """The values of a topic, in the order they were written (topics of one partition)."""
        return [json.loads(message.value()) for message in read(self.broker, topic)]

    def ids(self, topic: str) -> list[str]:
        return [dict(message.headers())["hr-id"].decode() for message in read(self.broker, topic)]

    def letters(self) -> list[dead.DeadLetter]:
        return sorted(dead.letters(self.broker, self.topic), key=lambda letter: (letter.partition, letter.offset))


def until(condition: Callable[[], Any], *, within: float = TIMEOUT, every: float = 0.02) -> None:
    """Waits for a condition; the test fails if it does not come true. `every`: more for one that asks the broker."""
    deadline, tick = time.monotonic() + within, threading.Event()
    while not condition():
        assert time.monotonic() < deadline, "it did not come true in time"
        tick.wait(every)


class Live:
    """A live query under the test's hand."""

    def __init__(self, flowing: Flowing, query: Any) -> None:
        self._flowing, self._query = flowing, query
        self._totals: dict[int, dict[str, int]] = {}

    def batch(self, *events: Any, partition: int = 0) -> None:
        """All events in one batch; then time moves, until nothing is left to do."""
        self._flowing.send(*events, partition=partition)
        self.settle()

    def settle(self) -> None:
        """Reads what is there; then time moves, until nothing is left to do."""
        self._query.processAllAvailable()

    def send(self, *events: Any, partition: int = 0) -> None:
        """Each event in a batch of its own."""
        for event in events:
            self.batch(event, partition=partition)

    def busy(self) -> bool:
        """Whether a batch runs."""
        return bool(self._query.status["message"] == "Processing new data")

    def counts(self) -> dict[str, Counts]:
        """Where every row went so far, by step (rule D3)."""
        told = json.loads(self._flowing.spark.jvm.Counters.take(str(self._query.runId)))
        for steps in told.values():
            for step, terms in steps.items():
                total = self._totals.setdefault(int(step), {})
                for term, count in terms.items():
                    if term not in ("keys", "bytes"):  # counted beside the rows
                        total[term] = total.get(term, 0) + count
        named = {step.ordinal: step.name for step in self._flowing.flow.steps}
        return {
            named[ordinal]: Counts(step=named[ordinal], **{"entered" if t == "in" else t: n for t, n in terms.items()})
            for ordinal, terms in self._totals.items()
        }


@contextmanager
def running(flowing: Flowing, interval: str) -> Iterator[Running]:
    """In real time, watched as a user's run is; what stopped it fails the test."""
    found = Running(flowing.spark, flowing.job("realtime", pace=duration(interval)), lambda _: None)
    try:
        yield found
    finally:
        found.stop()
    assert found.error is None


@contextmanager
def short_batches(spark: Spark) -> Iterator[None]:
    """To see batches end, and planned as in a session for real time; this one is shared."""
    conf, rules = spark.session.conf, profile.EXCLUDED_RULES
    excluded = f"{conf.get(rules)},{profile.REALTIME[rules]}"
    wanted = {"spark.sql.streaming.realTimeMode.minBatchDuration": "1000", rules: excluded}
    before = {name: conf.get(name, None) for name in wanted}
    for name, value in wanted.items():
        conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            conf.unset(name) if value is None else conf.set(name, value)
