"""Speed of the log room: typed produce, consume and table rebuild, each beside the bare client with `json`.

    python benchmarks/log.py [--broker HOST:PORT] [--events N] [--runs N]

Bare and typed take turns in one process, with the same client settings; the table shows the best of the runs, since
what disturbs a run on a shared machine only ever slows it. CPU is this process's own, client threads included.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import confluent_kafka

from headrace.base.ids import random_id
from headrace.base.money import Money, money
from headrace.base.settings import load
from headrace.log import topics
from headrace.log.broker import Broker
from headrace.log.consume import Consumer
from headrace.log.produce import Producer
from headrace.log.table import Table
from headrace.model.event import event
from headrace.model.topic import Topic
from headrace.stack import stack

TOPIC = f"bench-{random_id()[:8]}"
KEYS = 10_000
TARGETS = {"typed produce": 80_000, "typed consume": 120_000, "table rebuild": 100_000}
RATIO = 0.5
"""Typed beside bare: half the speed at least, for checked events instead of dicts."""
START = datetime(2026, 11, 3, tzinfo=UTC)


@event(topic=TOPIC, key="card_id", time="at", id="payment_id")
class Payment:
    """Six fields, as a terminal reports them."""

    payment_id: str
    card_id: str
    terminal_id: str
    amount: Money
    country: str
    at: datetime


Run = tuple[float, float]
"""Seconds on the clock, seconds of CPU."""


def timed(work: Callable[[], Any]) -> Run:
    cpu, clock = _cpu(), time.perf_counter()
    work()
    return time.perf_counter() - clock, _cpu() - cpu


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def typed_produce(broker: Broker, count: int) -> None:
    prices = [money(n) for n in range(100)]
    with Producer(broker, Payment) as producer:
        producer.send_many(
            Payment(f"p-{n}", f"c-{n % KEYS}", f"t-{n % 500}", prices[n % 100], "DE", START + timedelta(milliseconds=n))
            for n in range(count)
        )


def bare_produce(broker: Broker, topic: str, count: int) -> None:
    """What one writes by hand: dict, json.dumps, produce; the same client settings as ours."""
    failed: list[Any] = []
    settings = {
        "partitioner": "murmur2_random",
        "enable.idempotence": True,
        "linger.ms": 5,
        "batch.size": 1_000_000,
        "compression.type": "lz4",
        "delivery.report.only.error": True,
        "on_delivery": lambda error, _: failed.append(error),
    }
    client = confluent_kafka.Producer(broker.config(settings | {"log_level": 0}))
    for n in range(count):
        at = START + timedelta(milliseconds=n)
        row = {
            "payment_id": f"p-{n}",
            "card_id": f"c-{n % KEYS}",
            "terminal_id": f"t-{n % 500}",
            "amount": f"{n % 100}.00",
            "country": "DE",
            "at": at.isoformat(),
        }
        value = json.dumps(row)
        while True:
            try:
                client.produce(topic, value, row["card_id"], timestamp=int(at.timestamp() * 1000))
                break
            except BufferError:
                client.poll(0.1)
    client.flush()
    assert not failed


def typed_consume(broker: Broker, count: int) -> None:
    with Consumer(broker, Payment, group=f"bench-{random_id()}") as consumer:
        seen = 0
        for record in consumer:
            seen += record.event.country == "DE"
            if seen == count:
                break


def bare_consume(broker: Broker, topic: str, count: int) -> None:
    settings = {
        "group.id": f"bench-{random_id()}",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": True,
        "queued.min.messages": 20_000,
        "fetch.queue.backoff.ms": 10,
    }
    client = confluent_kafka.Consumer(broker.config(settings))
    client.subscribe([topic])
    seen = 0
    while seen < count:
        for message in client.consume(500, 0.5):
            row = json.loads(message.value())
            seen += row["country"] == "DE"
    client.close()


def rebuild(broker: Broker) -> None:
    with Table(broker, Payment) as table:
        assert len(table) == KEYS


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--broker", help="HOST:PORT; without it an embedded broker is started")
    asked.add_argument("--events", type=int, default=300_000)
    asked.add_argument("--runs", type=int, default=3)
    given = asked.parse_args()
    if given.broker:
        measure(Broker(bootstrap=given.broker), given.events, given.runs)
        return
    with tempfile.TemporaryDirectory() as home:
        addresses = stack.up(Path(home), load().cache, parts=("kafka",), foreground=True)
        try:
            measure(Broker(bootstrap=addresses.kafka), given.events, given.runs)
        finally:
            stack.down(Path(home))


def measure(broker: Broker, events: int, times: int) -> None:
    bare = f"{TOPIC}-bare"
    topics.ensure(broker, Topic(name=TOPIC, partitions=4), Topic(name=bare, partitions=4))
    names = ("bare produce", "typed produce", "bare consume", "typed consume", "table rebuild")
    runs: dict[str, list[Run]] = {name: [] for name in names}
    for turn in range(1, times + 1):
        held = events * turn
        runs["bare produce"].append(timed(lambda: bare_produce(broker, bare, events)))
        runs["typed produce"].append(timed(lambda: typed_produce(broker, events)))
        runs["bare consume"].append(_each(timed(lambda: bare_consume(broker, bare, held)), turn))  # noqa: B023
        runs["typed consume"].append(_each(timed(lambda: typed_consume(broker, held)), turn))  # noqa: B023
        runs["table rebuild"].append(_each(timed(lambda: rebuild(broker)), turn))
    show(runs, events)
    topics.delete(broker, TOPIC)
    topics.delete(broker, bare)


def _each(run: Run, turn: int) -> Run:
    """The n-th turn reads n times as much."""
    return run[0] / turn, run[1] / turn


def show(runs: dict[str, list[Run]], count: int) -> None:
    print(f"{'':16}{'events/s':>12}{'target':>10}{'of bare':>10}{'target':>10}{'per CPU s':>12}")
    rate = {name: count / min(clock for clock, _ in found) for name, found in runs.items()}
    for name, found in runs.items():
        core = count / min(cpu for _, cpu in found)
        against = name.replace("typed", "bare")
        paired = against != name and against in rate
        ratio, least = (f"{rate[name] / rate[against]:.2f}", f"{RATIO:.2f}") if paired else ("", "")
        target = f"{TARGETS[name]:,}" if name in TARGETS else ""
        print(f"{name:16}{rate[name]:>12,.0f}{target:>10}{ratio:>10}{least:>10}{core:>12,.0f}")


if __name__ == "__main__":
    main()
