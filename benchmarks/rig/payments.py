"""Payments on a topic: the event that every benchmark reads, and how a topic is filled with millions of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from confluent_kafka import Producer

import headrace as hr
from headrace.base.clock import from_micros, micros, rfc3339
from headrace.base.settings import Settings, load
from headrace.log import topics
from headrace.log.broker import Broker
from headrace.model.topic import Topic
from headrace.stack import stack

START = datetime(2026, 3, 3, tzinfo=UTC)
SPAN = timedelta(minutes=170)
"""Of event time, over all payments of a topic."""
DISORDER = "20 s"
PARTITIONS = 4
JSON = "payment_id string, card_id string, terminal_id string, amount decimal(18,2), country string, at timestamp"
"""The same event, as Spark's own from_json is told."""


def payment(topic: str) -> type:
    """Six fields, as a terminal reports them, in a topic of this name."""

    @hr.event(topic=topic, key="card_id", time="at", id="payment_id")
    class Payment:
        payment_id: str
        card_id: str
        terminal_id: str
        amount: hr.Money
        country: str
        at: datetime

    return Payment


@contextmanager
def log(memory: str = "3g") -> Iterator[tuple[Settings, Broker]]:
    """An embedded broker in a home of its own, gone afterwards."""
    with TemporaryDirectory(prefix="headrace-bench-") as home:
        settings = load({"home": home, "spark.driver_memory": memory}, root=Path(home), env={})
        addresses = stack.up(settings.home, settings.cache, parts=("kafka",), foreground=True)
        try:
            yield settings, Broker.of(settings, embedded=addresses.kafka)
        finally:
            stack.down(settings.home)


def fill(broker: Broker, topic: str, count: int, keys: int) -> None:
    """So many payments of so many cards, in order of time but for some seconds; dated as they say (rule F3)."""
    topics.ensure(broker, Topic(name=topic, partitions=PARTITIONS))
    step = SPAN // timedelta(microseconds=1) // count
    begin = micros(START)
    send(
        broker,
        topic,
        (record(n, begin + n * step - n * 7919 % 18_000_000, n * 2_654_435_761 % keys) for n in range(count)),
    )


def send(broker: Broker, topic: str, records: Iterable[tuple[str, str, int]]) -> None:
    """Records as (key, value, time in ms), written by hand: the bare client is as fast as Python gets."""
    settings = {"partitioner": "murmur2_random", "linger.ms": 20, "batch.size": 1_000_000, "compression.type": "lz4"}
    client = Producer(broker.config(settings | {"queue.buffering.max.messages": 500_000, "acks": "1"}))
    for key, value, time in records:
        try:
            client.produce(topic, value, key, timestamp=time)
        except BufferError:
            client.poll(0.2)
            client.produce(topic, value, key, timestamp=time)
    client.flush()


def record(n: int, at: int, card: int) -> tuple[str, str, int]:
    """The n-th payment, at this time in micros, as (key, value, time in ms)."""
    key = f"card-{card}"
    cents = n * 40_503 % 100_000
    value = (
        f'{{"payment_id":"p-{n}","card_id":"{key}","terminal_id":"t-{n % 500}",'
        f'"amount":"{cents // 100}.{cents % 100:02}","country":"DE","at":"{rfc3339(from_micros(at))}"}}'
    )
    return key, value, at // 1000


def counted(broker: Broker, *names: str) -> int:
    """How many records these topics hold."""
    return sum(topics.describe(broker, name).records for name in names)
