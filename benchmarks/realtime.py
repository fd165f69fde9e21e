"""Real-time mode: how long after a payment is sent its match can be read, from Kafka to Kafka.

    python benchmarks/realtime.py [--rate N] [--seconds N] [--warm MATCHES] [--twins N] [--interval TIME]

Payments are enriched with what a table says now, then a pattern takes each with the one before it: two stages with
state, and one match for every payment but a key's first. Sender, reader and each twin are processes of their own, and
share one clock.
"""

from __future__ import annotations

import argparse
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

import psutil
from confluent_kafka import Consumer, Producer, TopicPartition
from rig import payments
from rig.pace import paced
from rig.table import Line, Table

import headrace as hr
from headrace.base.clock import from_micros, micros, rfc3339
from headrace.base.settings import Settings
from headrace.log.broker import Broker
from headrace.log.produce import Producer as Sender
from headrace.log.topics import ensure
from headrace.model.topic import Topic
from headrace.ops.run import run

KEYS = 1_000
PARTITIONS = 2
SENT, CARDS, MATCHES = "realtime-payments", "realtime-cards", "realtime-matches"


@hr.event(topic=SENT, key="card_id", time="at")
class Payment:
    card_id: str
    amount: int
    at: datetime


@hr.event(topic=CARDS, key="card_id", time="since")
class Card:
    card_id: str
    country: str
    since: datetime


def declared() -> hr.App:
    app = hr.App("bench")
    spent = app.stream(Payment, disorder="0 s").enrich(app.table(Card), on="card_id")
    select = "card_id, now.country as country, now.at as at"
    pairs = app.pattern("pairs", key="card_id", after_match="none", select=select)
    pairs = pairs.first("before", spent).next("now", spent, where="now.amount > before.amount").within("5 min")
    pairs.matches.to(app.topic(MATCHES, partitions=PARTITIONS))
    return app


def send(broker: Broker, rate: int, line: Connection) -> None:
    """A payment at a time, dated when it is sent, until the line is closed."""
    client = Producer(broker.config({"linger.ms": 0, "acks": "1", "partitioner": "murmur2_random"}))
    for n in paced(client, rate):
        if line.poll():
            break
        key, now = f"card-{n * 7919 % KEYS}", time.time_ns() // 1000
        client.produce(
            SENT, f'{{"card_id":"{key}","amount":{n},"at":"{rfc3339(from_micros(now))}"}}', key,
            timestamp=now // 1000,
        )  # fmt: skip
    client.flush()


def read(broker: Broker, line: Connection) -> None:
    """Reads matches as they come until asked: when each payment was sent, how long after that it was read, micros."""
    client = Consumer(broker.config({"group.id": "bench", "fetch.wait.max.ms": 1, "enable.auto.commit": False}))
    client.assign([TopicPartition(MATCHES, p, 0) for p in range(PARTITIONS)])
    got: dict[bytes, int] = {}
    while not line.poll():
        messages = client.consume(100, 0.001)
        now = time.time_ns() // 1000
        for message in messages:
            got.setdefault(message.value(), now)  # twins say the same: the first counts
    client.close()
    sent = ((at, micros(datetime.fromisoformat(json.loads(value)["at"]))) for value, at in got.items())
    line.send([(since, at - since) for at, since in sent])


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--rate", type=int, default=500)
    asked.add_argument("--seconds", type=int, default=20)
    asked.add_argument("--warm", type=int, default=30_000, help="matches before measuring begins: the JVM compiles")
    asked.add_argument("--interval", default="5 min", help="how often state is made safe; rows wait meanwhile")
    asked.add_argument(
        "--twins", type=int, default=1, help="copies of the flow that wait in turns; the first match counts"
    )
    given = asked.parse_args()
    title = f"real time at {given.rate:,} events/s, {KEYS:,} keys, {PARTITIONS} partitions: enrich + pattern"
    table = Table(f"{title}, {given.twins} x every {given.interval}")
    with ExitStack() as undo:
        settings, broker = undo.enter_context(payments.log("2g"))
        for topic in (SENT, CARDS):
            ensure(broker, Topic(name=topic, partitions=PARTITIONS))
        with Sender(broker, Card, acks=1) as sender:
            sender.send_many(Card(f"card-{n}", "DK", datetime(2026, 1, 1, tzinfo=UTC)) for n in range(KEYS))
        twins = [
            undo.enter_context(begun(twin, settings, given.interval, number)) for number in range(1, given.twins + 1)
        ]
        took, ends, busy = measure(undo, broker, twins, given)
    assert took, "no match came"
    aims = (("p50", 0.5, 5), ("p99", 0.99, 20), ("p99.9", 0.999, 100 if ends else None))
    for name, q, aim in aims:
        found = took[int((len(took) - 1) * q)]
        line = Line(what=f"payment -> match, {name}", figure=f"{found:.1f} ms")
        if aim is not None:
            line = replace(line, target=f"{aim} ms", met=found <= aim)
        if q > 0.99:
            line = replace(line, beside=f"{len(took):,} matches, {ends} intervals ended; {busy:.2f} cores busy")
        table.add(line)


@dataclass(frozen=True, slots=True)
class Begun:
    """A process of its own, and the line to it."""

    process: psutil.Process
    line: Connection

    def asked(self) -> Any:
        """What it answers."""
        self.line.send("tell")
        return self.line.recv()

    def busy(self) -> float:
        """Seconds of processor time, of it and those it started."""
        return sum(sum(one.cpu_times()[:2]) for one in (self.process, *self.process.children(recursive=True)))


@contextmanager
def begun(work: Callable[..., None], *given: Any) -> Iterator[Begun]:
    here, there = get_context("spawn").Pipe()
    process = get_context("spawn").Process(target=work, args=(*given, there))
    process.start()
    there.close()
    try:
        yield Begun(psutil.Process(process.pid), here)
    finally:
        here.close()
        process.join()


def twin(settings: Settings, interval: str, number: int, line: Connection) -> None:
    """The flow, until the line is closed; tells how many intervals have ended."""
    os.setsid()  # the kernel is fair to sessions
    with run(declared(), settings, mode="realtime", twin=number, interval=interval) as running, suppress(EOFError):
        (flow,) = running.flows
        while line.recv():
            assert flow.error is None, flow.error
            line.send(flow.snapshot.batch)


def measure(
    undo: ExitStack, broker: Broker, twins: list[Begun], given: argparse.Namespace
) -> tuple[list[float], int, float]:
    """Milliseconds of every match after the warm-up; how many intervals ended meanwhile; how many cores were busy."""
    for one in twins:
        one.asked()  # it runs, and so its topics are there
    reader = undo.enter_context(begun(read, broker))
    undo.enter_context(begun(send, broker, given.rate))
    while payments.counted(broker, MATCHES) < given.warm * given.twins:
        threading.Event().wait(0.5)

    def stand() -> tuple[int, float, int]:
        return time.time_ns() // 1000, sum(one.busy() for one in twins), sum(one.asked() for one in twins)

    before = stand()
    threading.Event().wait(given.seconds)
    after = stand()
    took = sorted(ms / 1000 for since, ms in reader.asked() if before[0] <= since < after[0])
    return took, after[2] - before[2], (after[1] - before[1]) / given.seconds


if __name__ == "__main__":
    main()
