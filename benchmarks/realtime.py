"""Real-time mode: how long after a payment is sent its match can be read, from Kafka to Kafka.

    python benchmarks/realtime.py [--rate N] [--seconds N] [--warm MATCHES]

Payments are enriched with what a table says now, then a pattern takes each with the one before it: two stages with
state, and one match for every payment but a key's first. Sender and reader share one clock and are processes of their
own.
"""

from __future__ import annotations

import argparse
import json
import threading
import time
from datetime import UTC, datetime
from multiprocessing import get_context
from multiprocessing.connection import Connection

import psutil
from confluent_kafka import Consumer, Producer, TopicPartition
from rig import payments
from rig.table import Line, Table

import headrace as hr
from headrace.base.clock import from_micros, micros, rfc3339
from headrace.log.broker import Broker
from headrace.log.produce import Producer as Sender
from headrace.log.topics import ensure
from headrace.model.topic import Topic
from headrace.ops.run import make_topics
from headrace.plan.plan import build
from headrace.spark.checkpoint import Checkpoint
from headrace.spark.query import Job, start
from headrace.spark.session import start as start_spark

KEYS = 1_000
PARTITIONS = 2
SENT, MATCHES = "realtime-payments", "realtime-matches"


@hr.event(topic=SENT, key="card_id", time="at")
class Payment:
    card_id: str
    amount: int
    at: datetime


@hr.event(topic="realtime-cards", key="card_id", time="since")
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


def send(broker: Broker, rate: int, stop: Connection) -> None:
    """A payment at a time, dated when it is sent, until told to end."""
    client = Producer(broker.config({"linger.ms": 0, "acks": "1", "partitioner": "murmur2_random"}))
    n, began = 0, time.perf_counter()
    while not stop.poll():
        while (wait := began + n / rate - time.perf_counter()) > 0:
            client.poll(min(wait, 0.001))
        key, now = f"card-{n * 7919 % KEYS}", time.time_ns() // 1000
        client.produce(
            SENT, f'{{"card_id":"{key}","amount":{n},"at":"{rfc3339(from_micros(now))}"}}', key,
            timestamp=now // 1000,
        )  # fmt: skip
        n += 1
    client.flush()


def read(broker: Broker, stop: Connection) -> None:
    """Reads matches as they come; gives (when the payment was sent, how long after that it was read), micros."""
    client = Consumer(broker.config({"group.id": "bench", "fetch.wait.max.ms": 1, "enable.auto.commit": False}))
    client.assign([TopicPartition(MATCHES, p, 0) for p in range(PARTITIONS)])
    got = []
    while not stop.poll():
        messages = client.consume(100, 0.001)
        now = time.time_ns() // 1000
        got += [(now, message.value()) for message in messages]
    client.close()
    sent = ((at, micros(datetime.fromisoformat(json.loads(value)["at"]))) for at, value in got)
    stop.send([(since, at - since) for at, since in sent])


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--rate", type=int, default=500)
    asked.add_argument("--seconds", type=int, default=20)
    asked.add_argument("--warm", type=int, default=30_000, help="matches before measuring begins: the JVM compiles")
    given = asked.parse_args()
    table = Table(f"real time at {given.rate:,} events/s, {KEYS:,} keys, {PARTITIONS} partitions: enrich + pattern")
    with payments.log("2g") as (settings, broker), start_spark(settings, profile="realtime", app_name="bench") as spark:
        plan = build(declared())
        (flow,) = plan.flows
        for topic in flow.topics:
            ensure(broker, Topic(name=topic, partitions=PARTITIONS))
        make_topics(broker, plan, [Topic(name=MATCHES, partitions=PARTITIONS)], lambda _: None)
        with Sender(broker, Card, acks=1) as sender:
            sender.send_many(Card(f"card-{n}", "DK", datetime(2026, 1, 1, tzinfo=UTC)) for n in range(KEYS))
        checkpoint = Checkpoint.of(settings.home, plan, flow)
        query = start(spark, Job(plan=plan, flow=flow, mode="realtime", broker=broker, checkpoint=checkpoint))
        spawn, ends = get_context("spawn"), []
        for work, arguments in ((send, (given.rate,)), (read, ())):
            here, there = spawn.Pipe()
            spawn.Process(target=work, args=(broker, *arguments, there), daemon=True).start()
            ends.append(here)
        while payments.counted(broker, MATCHES) < given.warm:
            assert query.exception() is None, query.exception()
            threading.Event().wait(0.5)
        jvm = psutil.Process(spark.gateway.process.pid)
        begin, busy = time.time_ns() // 1000, sum(jvm.cpu_times()[:2])
        threading.Event().wait(given.seconds)
        until, busy = time.time_ns() // 1000, sum(jvm.cpu_times()[:2]) - busy
        sender_end, reader_end = ends
        sender_end.send("end")
        threading.Event().wait(2)
        reader_end.send("end")
        took = sorted(ms / 1000 for since, ms in reader_end.recv() if begin <= since < until)
        if query.exception() is not None:
            raise query.exception()
        query.stop()
    assert took, "no match came"
    for name, q, aim in (("p50", 0.5, 5), ("p99", 0.99, 20)):
        found = took[int((len(took) - 1) * q)]
        beside = f"of {len(took):,} matches; {busy / given.seconds:.2f} cores busy" if q > 0.5 else ""
        table.add(
            Line(what=f"payment -> match, {name}", figure=f"{found:.1f} ms", target=f"{aim} ms", met=found <= aim,
                 beside=beside)
        )  # fmt: skip


if __name__ == "__main__":
    main()
