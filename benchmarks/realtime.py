"""Real-time mode: how long after a payment is sent its result can be read, from Kafka to Kafka.

    python benchmarks/realtime.py [--flow bank] [--rate N] [--seconds N] [--warm RESULTS] [--twins N] [--interval TIME]

`pairs`, the default: payments are enriched with what a table says now, then a pattern takes each with the one before
it: two stages with state, and one match for every payment but a key's first. `bank`: the bank's own decision on each,
without its service (bank/decide.py): three shuffles, three kinds of features, two patterns, rules and a model. Sender,
reader and each twin are processes of their own, and share one clock.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path

import msgspec
from confluent_kafka import Consumer, Producer, TopicPartition
from rig import payments
from rig.pace import paced
from rig.process import Begun, begun
from rig.table import Line, Table

sys.path.insert(0, str(Path(__file__).parents[1]))

import headrace as hr
from bank.decide import decide, raw
from bank.policy import policy
from bank.traffic import Traffic
from headrace.base.clock import micros, rfc3339
from headrace.base.settings import Settings
from headrace.log import topics
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """What is measured: an app, what must be on the log before, the rows, each dated as it is asked for."""

    title: str
    sent: str
    out: str
    declared: Callable[[], hr.App]
    begin: Callable[[Settings, Broker], None]
    rows: Callable[[], Iterator[tuple[str, str | bytes, datetime]]]


def pairs() -> hr.App:
    app = hr.App("bench")
    spent = app.stream(Payment, disorder="0 s").enrich(app.table(Card), on="card_id")
    select = "card_id, now.country as country, now.at as at"
    pairs = app.pattern("pairs", key="card_id", after_match="none", select=select)
    pairs = pairs.first("before", spent).next("now", spent, where="now.amount > before.amount").within("5 min")
    pairs.matches.to(app.topic(MATCHES, partitions=PARTITIONS))
    return app


def cards(settings: Settings, broker: Broker) -> None:
    for topic in (SENT, CARDS):
        ensure(broker, Topic(name=topic, partitions=PARTITIONS))
    with Sender(broker, Card, acks=1) as sender:
        sender.send_many(Card(f"card-{n}", "DK", datetime(2026, 1, 1, tzinfo=UTC)) for n in range(KEYS))


def amounts() -> Iterator[tuple[str, str, datetime]]:
    for n in count():
        key, now = f"card-{n * 7919 % KEYS}", datetime.now(UTC)
        yield key, f'{{"card_id":"{key}","amount":{n},"at":"{rfc3339(now)}"}}', now


def customers(settings: Settings, broker: Broker) -> None:
    with hr.connect(decide, settings) as client:
        client.send(*Traffic().customers(datetime.now(UTC)))
        client.policy("fraud").publish(policy())


def life() -> Iterator[tuple[str, bytes, datetime]]:
    for made in Traffic().live(lambda: datetime.now(UTC)):
        yield made.payment.card_id, msgspec.json.encode(made.payment), made.payment.at


FLOWS = {
    "pairs": Flow(
        title=f"{KEYS:,} keys, {PARTITIONS} partitions: enrich + pattern",
        sent=SENT,
        out=MATCHES,
        declared=pairs,
        begin=cards,
        rows=amounts,
    ),
    "bank": Flow(
        title="5,000 cards: the bank's decision",
        sent="payments",
        out=raw.name,
        declared=lambda: decide,
        begin=customers,
        rows=life,
    ),
}


def send(broker: Broker, name: str, rate: int, line: Connection) -> None:
    """A payment at a time, dated when it is sent, until the line is closed."""
    flow = FLOWS[name]
    client = Producer(broker.config({"linger.ms": 0, "acks": "1", "partitioner": "murmur2_random"}))
    rows = flow.rows()
    for _ in paced(client, rate):
        if line.poll():
            break
        key, value, at = next(rows)
        client.produce(flow.sent, value, key, timestamp=micros(at) // 1000)
    client.flush()


@dataclass(frozen=True, slots=True)
class Result:
    """What tells a result from all others, twins' of the same payment aside."""

    key: bytes
    at: bytes


def result(key: bytes, value: bytes) -> Result:
    """Of a record; its JSON is not parsed, or the reader would be what is measured."""
    begin = value.index(b'"at":"') + 6
    return Result(key, value[begin : value.index(b'"', begin)])


def read(broker: Broker, name: str, line: Connection) -> None:
    """Reads results as they come until asked: when each payment was sent, how long after that it was read, micros."""
    topic = FLOWS[name].out
    client = Consumer(broker.config({"group.id": "bench", "fetch.wait.max.ms": 1, "enable.auto.commit": False}))
    client.assign([TopicPartition(topic, p, 0) for p in range(topics.widths(broker)[topic])])
    got: dict[Result, int] = {}
    while not line.poll():
        messages = client.consume(100, 0.001)
        now = time.time_ns() // 1000
        for message in messages:
            got.setdefault(result(message.key(), message.value()), now)  # twins say the same: the first counts
    client.close()
    sent = ((at, micros(datetime.fromisoformat(one.at.decode()))) for one, at in got.items())
    line.send([(since, at - since) for at, since in sent])


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--flow", choices=tuple(FLOWS), default="pairs")
    asked.add_argument("--rate", type=int, default=500)
    asked.add_argument("--seconds", type=int, default=20)
    asked.add_argument("--warm", type=int, default=30_000, help="results before measuring begins: the JVM compiles")
    asked.add_argument("--interval", default="5 min", help="how often state is made safe; rows wait meanwhile")
    asked.add_argument(
        "--twins", type=int, default=1, help="copies of the flow that wait in turns; the first result counts"
    )
    given = asked.parse_args()
    flow = FLOWS[given.flow]
    table = Table(f"real time at {given.rate:,} events/s, {flow.title}, {given.twins} x every {given.interval}")
    with ExitStack() as undo:
        settings, broker = undo.enter_context(payments.log("2g"))
        flow.begin(settings, broker)
        twins = [
            undo.enter_context(begun(twin, given.flow, settings, given.interval, number))
            for number in range(1, given.twins + 1)
        ]
        took, ends, busy = measure(undo, broker, twins, given)
    assert took, "no result came"
    aims = (("p50", 0.5, 5), ("p99", 0.99, 20), ("p99.9", 0.999, 100 if ends else None))
    for name, q, aim in aims:
        found = took[int((len(took) - 1) * q)]
        line = Line(what=f"payment -> result, {name}", figure=f"{found:.1f} ms")
        if aim is not None:
            line = replace(line, target=f"{aim} ms", met=found <= aim)
        if q > 0.99:
            line = replace(line, beside=f"{len(took):,} results, {ends} intervals ended; {busy:.2f} cores busy")
        table.add(line)


def twin(name: str, settings: Settings, interval: str, number: int, line: Connection) -> None:
    """The flow, until the line is closed; tells how many intervals have ended."""
    os.setsid()  # the kernel is fair to sessions
    app = FLOWS[name].declared()
    with run(app, settings, mode="realtime", twin=number, interval=interval) as running, suppress(EOFError):
        (flow,) = running.flows
        while line.recv():
            assert flow.error is None, flow.error
            line.send(flow.snapshot.batch)


def measure(
    undo: ExitStack, broker: Broker, twins: list[Begun], given: argparse.Namespace
) -> tuple[list[float], int, float]:
    """Milliseconds of every result after the warm-up; how many intervals ended meanwhile; how many cores were busy."""
    for one in twins:
        one.asked()  # it runs, and so its topics are there
    reader = undo.enter_context(begun(read, broker, given.flow))
    undo.enter_context(begun(send, broker, given.flow, given.rate))
    while payments.counted(broker, FLOWS[given.flow].out) < given.warm * given.twins:
        for one in twins:
            one.asked()
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
