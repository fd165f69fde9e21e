"""State: what a key and its windows take in the store, and that memory stays flat while keys come and go.

    python benchmarks/state.py [--events N] [--sized N]

Sizes are read from a stopped query's own store: the one value per key, as it lies there, and the key before it. For
memory, cards appear, pay a few times and never come back, so that state must be forgotten as fast as it is made; the
heap is measured after a collection.
"""

from __future__ import annotations

import argparse
import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psutil
from rig import payments
from rig.table import Line, Table

import headrace as hr
from headrace.base.clock import micros
from headrace.base.settings import Settings
from headrace.log import topics
from headrace.log.broker import Broker
from headrace.model.topic import Topic
from headrace.observe.snapshot import FlowSnapshot
from headrace.ops.run import make_topics
from headrace.plan.plan import build
from headrace.spark.checkpoint import Checkpoint
from headrace.spark.job import Job
from headrace.spark.running import Running
from headrace.spark.session import Spark
from headrace.spark.session import start as start_spark

KEYS = 1_000
EACH = {"tumbling 10 min": (17, "window"), "hopping 1 h every 5 min": (34, "slice of 5 min")}
"""Into how many windows or slices the payments of one key fall."""
WHEEL = 2**21 - 1
"""The step under which the kernel keeps what is due, beside the keys (jvm/Stage.scala)."""
LOOKS = 10
CACHE = 500  # MB; what RocksDB may take, by Spark's default
FLAT = 1.25
"""Memory in the last third of a run is at most this many times that of the second."""


def sizes(table: Table, settings: Settings, broker: Broker, spark: Spark, count: int) -> None:
    """Every kind of window over the same payments, stopped while the windows are open."""
    payments.fill(broker, "sized", count, KEYS)
    app = hr.App("sized")
    stream = app.stream(payments.payment("sized"), disorder="1 d", idle=None)  # so long a disorder closes nothing
    kinds: dict[str, Any] = {
        "tumbling 10 min": hr.tumbling("10 min"),
        "hopping 1 h every 5 min": hr.hopping("1 h", every="5 min"),
        "session gap 1 min": hr.session(gap="1 min"),
        "sliding 10 min (all rows held)": hr.sliding("10 min"),
    }
    for n, window in enumerate(kinds.values()):
        stream.window(window, lateness="0 s").agg(spent=hr.sum("amount"), times=hr.count()).to(app.topic(f"sized-{n}"))
    stream.dedup("payment_id", within="1 d").to(app.topic("sized-dedup"))
    plan = build(app)
    (flow,) = plan.flows
    make_topics(broker, plan, app.topics, lambda _: None)
    checkpoint = Checkpoint.of(settings.home, plan, flow)
    told: list[FlowSnapshot] = []
    running = Running(spark, Job(plan=plan, flow=flow, mode="live", broker=broker, checkpoint=checkpoint), told.append)
    while sum(s.rows for s in {s.batch: s for s in told}.values()) < count and running.error is None:
        threading.Event().wait(0.2)
    running.stop()
    if running.error:
        raise running.error
    names = iter([*kinds, "dedup"])  # steps are numbered as they were declared
    for _, keys, key, value in _stored(spark, str(checkpoint.spark)):
        name = next(names)
        beside = f"{keys:,} keys of {key:.0f} bytes"
        if name in EACH:
            parts, what = min(EACH[name][0], count // KEYS), EACH[name][1]
            beside += f", {value / parts:.1f} bytes per key and {what} ({parts} each)"
        table.add(Line(what=name, figure=f"{value:,.0f} bytes/key", beside=beside))


def _stored(spark: Spark, checkpoint: str) -> list[tuple[int, int, float, float]]:
    """Per step in order: how many keys, mean bytes of a key, mean bytes of its value."""
    state = spark.session.read.format("statestore").option("path", checkpoint).option("stateVarName", "state").load()
    sized = state.selectExpr(
        f"key.slot & {WHEEL} as step", "octet_length(key.key) as key", "octet_length(value.value) as value"
    )
    by_step = sized.where(f"step <> {WHEEL}").groupBy("step")
    return sorted(map(tuple, by_step.agg({"*": "count", "key": "avg", "value": "avg"}).select(
        "step", "count(1)", "avg(key)", "avg(value)").collect()))  # fmt: skip


def flat(table: Table, settings: Settings, broker: Broker, spark: Spark, count: int) -> None:
    topics.ensure(broker, Topic(name="fleeting", partitions=payments.PARTITIONS))
    payments.send(broker, "fleeting", _fleeting(count))
    app = hr.App("fleeting")
    stream = app.stream(payments.payment("fleeting"), disorder=payments.DISORDER)
    windows = stream.window(hr.tumbling("1 min"), lateness="1 min")
    windows.agg(spent=hr.sum("amount"), times=hr.count()).to(app.topic("fleeting-out"))
    plan = build(app)
    (flow,) = plan.flows
    make_topics(broker, plan, app.topics, lambda _: None)
    looks: list[tuple[int, float, float, float, int]] = []
    read = [0]

    def look(told: FlowSnapshot) -> None:
        """Runs on the flow's own thread, between batches."""
        if told.batch >= 0 and told.state == "running":
            read[0] += told.rows
            if read[0] >= (len(looks) + 1) * count // LOOKS:
                looks.append((read[0], *_memory(spark), told.state_bytes / 2**20, told.state_keys))

    checkpoint = Checkpoint.of(settings.home, plan, flow)
    batch = count // (2 * LOOKS)
    job = Job(plan=plan, flow=flow, mode="history", broker=broker, checkpoint=checkpoint, max_records=batch)
    running = Running(spark, job, look)
    running.wait()
    if running.error:
        raise running.error
    third = len(looks) // 3
    for column, name in ((1, "heap after a collection"), (3, "state store"), (2, "the whole process (RSS)")):
        then = max(entry[column] for entry in looks[third : 2 * third])
        now = max(entry[column] for entry in looks[2 * third :])
        course = " ".join(f"{entry[column]:.0f}" for entry in looks)
        bounded = column == 3  # it fills the cache that all stores share, and then stays
        table.add(
            Line(
                what=name,
                figure=f"{now:,.0f} MB",
                ratio=f"{now / then:.2f} x",
                target=f"{CACHE} MB" if bounded else f"{FLAT} x",
                met=now <= CACHE if bounded else now <= FLAT * then,
                beside=f"over the run, MB: {course}",
            )
        )
    kept = " ".join(f"{entry[4]:,}" for entry in looks)
    table.add(Line(what="keys held", figure=f"{looks[-1][4]:,}", beside=f"of {count // 4:,} cards in all: {kept}"))


def _fleeting(count: int) -> Iterator[tuple[str, str, int]]:
    """Every card pays four times within a second or two, then never again."""
    step = timedelta(hours=10) // timedelta(microseconds=1) // count
    begin = micros(payments.START)
    for n in range(count):
        yield payments.record(n, begin + n * step, n // 4000 * 1000 + n % 1000)


def _memory(spark: Spark) -> tuple[float, float]:
    """MB of heap after a collection, MB of the process."""
    jvm = spark.session._jvm
    jvm.java.lang.System.gc()
    heap = jvm.java.lang.management.ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed()
    return heap / 2**20, psutil.Process(spark.gateway.process.pid).memory_info().rss / 2**20


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--events", type=int, default=2_000_000)
    asked.add_argument("--sized", type=int, default=100_000)
    given = asked.parse_args()
    with payments.log("1g") as (settings, broker), start_spark(settings, app_name="state") as spark:
        sized = Table(f"bytes of state: {given.sized:,} payments of {KEYS:,} cards over 170 minutes, sum and count")
        sizes(sized, settings, broker, spark, given.sized)
        title = f"memory over {given.events:,} payments of {given.events // 4:,} cards that do not come back"
        flat(Table(title), settings, broker, spark, given.events)


if __name__ == "__main__":
    main()
