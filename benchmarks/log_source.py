"""The log source beside Spark's stock Kafka connector: the same payments, read by each in a JVM of its own.

    python benchmarks/log_source.py [--events N] [--laps N]

Both read all of it (availableNow) into a sink that looks at two columns and drops them. Ours decodes and checks every
record on the way; stock is shown bare (bytes only) and with from_json, which is what decoding takes there. They take
turns; the best lap counts, since what disturbs a run on a shared machine only ever slows it.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rig import payments, spark
from rig.table import Line, Table

import headrace as hr
from headrace.base.ids import random_id
from headrace.log.broker import Broker
from headrace.plan.plan import build
from headrace.spark.checkpoint import Checkpoint
from headrace.spark.clients import java_client
from headrace.spark.job import Job
from headrace.spark.log import read_log

TOPIC = "payments"


def read_ours(broker: Broker, folder: Path, batch: int) -> int:
    running = spark.session()
    app = hr.App("bench")
    app.stream(payments.payment(TOPIC), disorder=payments.DISORDER).to(app.topic("out"))
    plan = build(app)
    (flow,) = plan.flows
    job = Job(
        plan=plan,
        flow=flow,
        mode="history",
        broker=broker,
        checkpoint=Checkpoint.of(folder, plan, flow),
        max_records=batch,
    )
    # Aligned replay caps batches on its own; what is compared here is reading.
    frame = read_log(running, job.source() | {"aligned": False, "end_of_input": False}, java_client(broker))
    return drain(frame.where("dead is null and e0.amount > 99999 and time > 0"), folder)


def read_stock(broker: Broker, folder: Path, batch: int, decode: bool) -> int:
    frame = (
        spark.session().session.readStream.format("kafka")
        .option("kafka.bootstrap.servers", broker.bootstrap).option("subscribe", TOPIC)
        .option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", batch).load()
    )  # fmt: skip
    if not decode:
        return drain(frame.where("length(value) < 10 and timestamp > timestamp'2000-01-01'"), folder)
    import pyspark.sql.functions as sf

    decoded = frame.select(sf.from_json(sf.col("value").cast("string"), payments.JSON).alias("e"))
    return drain(decoded.where("e.amount > 99999 and e.at > timestamp'2000-01-01'"), folder)


def drain(frame: Any, folder: Path) -> int:
    """Runs the query to its end; how many rows it read."""
    query = (
        frame.writeStream.format("noop").option("checkpointLocation", str(folder / random_id()))
        .trigger(availableNow=True).start()
    )  # fmt: skip
    query.awaitTermination()
    return sum(progress["numInputRows"] for progress in query.recentProgress)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--events", type=int, default=2_000_000)
    asked.add_argument("--batch", type=int, default=200_000)
    asked.add_argument("--laps", type=int, default=3)
    given = asked.parse_args()
    with payments.log() as (settings, broker):
        payments.fill(broker, TOPIC, given.events, 10_000)
        best: dict[str, tuple[float, float]] = {}
        with spark.ours(settings) as ours, spark.stock(settings) as stock:
            for _ in range(given.laps):
                sides = {
                    "ours, decoded": ours.run(read_ours, broker, settings.home, given.batch),
                    "stock, bytes only": stock.run(read_stock, broker, settings.home, given.batch, False),
                    "stock, from_json": stock.run(read_stock, broker, settings.home, given.batch, True),
                }
                for name, spent in sides.items():
                    assert spent.gave == given.events, f"{name} read {spent.gave}"
                    clock, cpu = best.get(name, (1e9, 1e9))
                    best[name] = min(clock, spent.clock), min(cpu, spent.cpu)
    show(best, given.events, given.batch)


def show(best: dict[str, tuple[float, float]], events: int, batch: int) -> None:
    table = Table(f"log source: {events:,} payments, {payments.PARTITIONS} partitions, batches of {batch:,}")
    own, cpu = best["ours, decoded"]
    for name, (clock, used) in best.items():
        ratio = f"{clock / own:.1f} x" if name != "ours, decoded" else ""
        aim = name == "stock, from_json"
        table.add(
            Line(
                what=name,
                figure=f"{events / clock:,.0f}/s",
                ratio=ratio,
                target="3 x" if aim else "",
                met=clock / own >= 3 if aim else None,
                beside=f"{events / used:,.0f} per CPU s ({used / cpu:.1f} x)",
            )
        )


if __name__ == "__main__":
    main()
