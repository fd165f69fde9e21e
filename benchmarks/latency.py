"""Live latency: how long after an event is sent its result can be read, at a steady rate, through a real broker.

    python benchmarks/latency.py [--rate N] [--seconds N] [--warm BATCHES]

on_change: from sending an event to reading the first result that counts it. close: from sending the event that closes a
window (with it, every partition has passed the window's end) to reading each final result of that window. Sender and
reader share one clock and are processes of their own; trigger 0, acks=all, the product's own runner.
"""

from __future__ import annotations

import argparse
import json
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from datetime import datetime, timedelta
from multiprocessing.connection import Connection
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from rig import payments
from rig.pace import paced
from rig.process import begun
from rig.table import Line, Table

import headrace as hr
from headrace.base.clock import from_micros, micros, rfc3339
from headrace.base.settings import Settings
from headrace.log import topics
from headrace.log.broker import Broker
from headrace.model.topic import Topic
from headrace.ops.run import make_topics
from headrace.plan.plan import build
from headrace.spark.checkpoint import Checkpoint
from headrace.spark.job import Job
from headrace.spark.query import start
from headrace.spark.session import start as start_spark

WINDOW = timedelta(seconds=1)
KEYS = 1_000
PHASES = ("latestOffset", "queryPlanning", "getBatch", "walCommit", "addBatch", "commitBatch", "commitOffsets")
STATE = ("allUpdatesTimeMs", "allRemovalsTimeMs", "commitTimeMs")


def on_change(stream: Any) -> Any:
    return stream.key_by("card_id").window(hr.forever(), emit=hr.on_change()).agg(times=hr.count())


def at_close(stream: Any) -> Any:
    return stream.window(hr.tumbling(WINDOW), lateness="0 s").agg(times=hr.count())


def send(broker: Broker, topic: str, rate: int, stop: Connection) -> None:
    """Sends at the rate until told to end; gives the times of all events, by key, and of those that closed windows."""
    client = Producer(broker.config({"linger.ms": 0, "acks": "all", "enable.idempotence": True}))
    sent: dict[str, list[int]] = defaultdict(list)
    frontiers = [0] * payments.PARTITIONS
    closed: dict[int, int] = {}
    size = WINDOW // timedelta(microseconds=1)
    reached = 0
    for n in paced(client, rate):
        if stop.poll():
            break
        key, partition, now = f"card-{n * 7919 % KEYS}", n % payments.PARTITIONS, time.time_ns() // 1000
        value = (
            f'{{"payment_id":"p-{n}","card_id":"{key}","terminal_id":"t-1","amount":"1.00","country":"DE",'
            f'"at":"{rfc3339(from_micros(now))}"}}'
        )
        client.produce(topic, value, key, partition=partition, timestamp=now // 1000)
        sent[key].append(now)
        frontiers[partition] = now
        if min(frontiers) // size > reached:  # every window that ends up to here is closed by this event
            for end in range(reached + 1, min(frontiers) // size + 1) if reached else ():
                closed[end * size] = now
            reached = min(frontiers) // size
    client.flush()
    stop.send((dict(sent), closed))


def read(broker: Broker, topic: str, stop: Connection) -> None:
    """Reads results as they come; gives (when, value) of each."""
    client = Consumer(broker.config({"group.id": topic, "fetch.wait.max.ms": 5, "enable.auto.commit": False}))
    client.assign([TopicPartition(topic, p, 0) for p in range(payments.PARTITIONS)])
    got: list[tuple[int, bytes]] = []
    while not stop.poll():
        messages = client.consume(500, 0.005)
        now = time.time_ns() // 1000
        got += [(now, message.value()) for message in messages]
    client.close()
    stop.send(got)


def measure(
    settings: Settings, broker: Broker, spark: Any, name: str, declare: Callable[[Any], Any], given: argparse.Namespace
) -> tuple[list[float], list[dict[str, Any]]]:
    """Milliseconds of every result after the warm-up, and the progress of every batch."""
    app = hr.App("bench", version=name)
    declare(app.stream(payments.payment(f"in-{name}"), disorder="0 s")).to(
        app.topic(f"out-{name}", partitions=payments.PARTITIONS)
    )
    plan = build(app)
    (flow,) = plan.flows
    topics.ensure(broker, Topic(name=f"in-{name}", partitions=payments.PARTITIONS))
    make_topics(broker, plan, app.topics, lambda _: None)
    job = Job(plan=plan, flow=flow, mode="live", broker=broker, checkpoint=Checkpoint.of(settings.home, plan, flow))
    query = start(spark, job)
    progress: list[dict[str, Any]] = []

    def take() -> int:
        """Notes the batches that have ended, and gives the number of the last."""
        seen = progress[-1]["batchId"] if progress else -1
        # PySpark's own `recentProgress` takes thousands of calls, and a share of what is measured.
        progress.extend(json.loads(spark.jvm.Watch.ended(query._jsq, seen)))
        spark.jvm.Counters.take(str(query.runId))  # as the runner does: what nobody takes piles up
        return int(progress[-1]["batchId"]) if progress else -1

    with begun(read, broker, f"out-{name}") as reader, begun(send, broker, f"in-{name}", given.rate) as sender:
        while take() < given.warm:
            threading.Event().wait(1)
        warm = len(progress)
        begin = time.time_ns() // 1000
        for _ in range(given.seconds):
            threading.Event().wait(1)
            take()
        until = time.time_ns() // 1000
        sent, closed = sender.asked()
        threading.Event().wait(2)
        got = [(at, json.loads(value)) for at, value in reader.asked()]
    if query.exception() is not None:
        raise query.exception()
    query.stop()
    found = _of_change(sent, got) if name == "change" else _of_close(closed, got)
    return [ms for since, ms in found if begin <= since < until], progress[warm:]


def _of_change(sent: dict[str, list[int]], got: list[tuple[int, dict[str, Any]]]) -> list[tuple[int, float]]:
    found, counted = [], dict.fromkeys(sent, 0)
    for at, row in got:
        key = row["card_id"]
        times = sent[key][counted[key] : row["times"]]
        counted[key] = max(counted[key], row["times"])
        found += [(since, (at - since) / 1000) for since in times]
    return found


def _of_close(closed: dict[int, int], got: list[tuple[int, dict[str, Any]]]) -> list[tuple[int, float]]:
    found = []
    for at, row in got:
        since = closed.get(micros(datetime.fromisoformat(row["window_end"])))
        if since is not None and row["kind"] == "final":
            found.append((since, (at - since) / 1000))
    return found


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--rate", type=int, default=1_000)
    asked.add_argument("--seconds", type=int, default=20)
    asked.add_argument("--warm", type=int, default=1_000, help="batches before measuring begins: the JVM compiles")
    given = asked.parse_args()
    table = Table(
        f"live latency at {given.rate:,} events/s, {KEYS:,} keys, {payments.PARTITIONS} partitions, trigger 0"
    )
    with payments.log("2g") as (settings, broker), start_spark(settings, app_name="latency") as spark:
        for name, what, declare, aim in (
            ("change", "event -> on_change result", on_change, 150),
            ("close", "closing event -> final result", at_close, 400),
        ):
            found, progress = measure(settings, broker, spark, name, declare, given)
            show(table, what, sorted(found), aim, progress[len(progress) // 3 :])


def show(table: Table, what: str, found: list[float], aim: int, progress: list[dict[str, Any]]) -> None:
    assert found, "no result came"
    p50, p90, p99 = (found[int((len(found) - 1) * q)] for q in (0.5, 0.9, 0.99))
    full = [p for p in progress if p["numInputRows"]]
    rows = sum(p["numInputRows"] for p in full) / max(len(full), 1)
    table.add(
        Line(
            what=f"{what}, p50",
            figure=f"{p50:.0f} ms",
            target=f"{aim} ms",
            met=p50 <= aim,
            beside=f"p90 {p90:.0f}, p99 {p99:.0f} ms of {len(found):,} results",
        )
    )
    whole = sorted(p["durationMs"]["triggerExecution"] for p in full)
    phases = ", ".join(f"{phase} {_mean(full, phase):.0f}" for phase in PHASES if _mean(full, phase) >= 0.5)
    table.add(
        Line(what="  a batch", figure=f"{whole[len(whole) // 2]:.0f} ms", beside=f"{rows:.0f} rows; mean ms: {phases}")
    )
    state = [p["stateOperators"][0] for p in full if p["stateOperators"]]
    told = ", ".join(f"{name} {sum(o[name] for o in state) / len(state):.0f}" for name in STATE)
    table.add(
        Line(what="  its state", figure=f"{state[-1]['numRowsTotal']:,} rows", beside=f"ms over all tasks: {told}")
    )


def _mean(progress: list[dict[str, Any]], phase: str) -> float:
    return float(sum(p["durationMs"].get(phase, 0) for p in progress)) / max(len(progress), 1)


if __name__ == "__main__":
    main()
