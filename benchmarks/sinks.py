"""The Kafka sinks side by side: ours exactly once, ours at least once, and Spark's own, which is at least once.

    python benchmarks/sinks.py [--events N] [--batch N] [--laps N]

Each writes the same records, with a key, about 150 bytes and an id in a header, from the same Parquet files (a file a
batch) to a topic of its own. They take turns; the best lap counts.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rig import payments, spark
from rig.table import Line, Table

from headrace.base.ids import random_id
from headrace.log import topics
from headrace.log.broker import Broker
from headrace.model.topic import Topic
from headrace.spark.clients import java_client
from headrace.spark.commits import commits_topic
from headrace.spark.log import commit_log, write_log

ONCE, LEAST, STOCK = "ours, exactly once", "ours, at least once", "Spark's own, at least once"
RECORDS = (
    "'{topic}' as topic",
    "cast(concat('card ', id % 10000) as binary) as key",
    "cast(concat('{{\"payment_id\":\"', id, '\",\"filled\":\"', repeat('x', 110), '\"}}') as binary) as value",
    "1793718000000000 + id * 1000 as time",
    "array(struct('hr-id' as key, cast(sha1(cast(id as string)) as binary) as value)) as headers",
)


def prepare(folder: Path, events: int, batch: int) -> None:
    rows = spark.session().session.range(0, events, 1, events // batch).selectExpr("id")
    rows.write.parquet(str(folder))


def written(folder: Path, topic: str) -> Any:
    """A stream of records, a file a batch."""
    stream = spark.session().session.readStream.schema("id bigint").option("maxFilesPerTrigger", 1)
    return stream.parquet(str(folder)).selectExpr(*(column.format(topic=topic) for column in RECORDS))


def once(broker: Broker, folder: Path, topic: str) -> None:
    writer = written(folder, topic).writeStream
    commits = commits_topic("bench").name
    run(commit_log(writer, java_client(broker), id=topic, commits=commits, plans=folder, planned=-1), folder)


def least(broker: Broker, folder: Path, topic: str) -> None:
    run(write_log(spark.session(), written(folder, topic).writeStream, java_client(broker)), folder)


def stock(broker: Broker, folder: Path, topic: str) -> None:
    writer = written(folder, topic).drop("time").writeStream.format("kafka").option("includeHeaders", "true")
    batching = {"bootstrap.servers": broker.bootstrap, "acks": "all", "linger.ms": "5", "batch.size": "131072"}
    for name, value in batching.items():
        writer = writer.option(f"kafka.{name}", value)
    run(writer, folder)


def run(writer: Any, folder: Path) -> None:
    checkpoint = folder.with_name(f"checkpoint-{random_id()}")
    writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start().awaitTermination()


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--events", type=int, default=2_000_000)
    asked.add_argument("--batch", type=int, default=200_000)
    asked.add_argument("--laps", type=int, default=3)
    given = asked.parse_args()
    best: dict[str, tuple[float, float]] = {}
    with payments.log() as (settings, broker), spark.ours(settings) as ours, spark.stock(settings) as theirs:
        folder = settings.home / "records"
        ours.run(prepare, folder, given.events, given.batch)
        topics.ensure(broker, commits_topic("bench"))
        for lap in range(given.laps):
            for name, worker, work in ((ONCE, ours, once), (LEAST, ours, least), (STOCK, theirs, stock)):
                topic = f"{work.__name__}-{lap}"
                topics.ensure(broker, Topic(name=topic, partitions=payments.PARTITIONS))
                spent = worker.run(work, broker, folder, topic)
                found = topics.describe(broker, topic).records
                assert found >= given.events, f"{name} wrote {found}"
                topics.delete(broker, topic)
                clock, cpu = best.get(name, (1e9, 1e9))
                best[name] = min(clock, spent.clock), min(cpu, spent.cpu)
    show(best, given.events, given.batch)


def show(best: dict[str, tuple[float, float]], events: int, batch: int) -> None:
    table = Table(f"sinks: {events:,} records, {payments.PARTITIONS} partitions, batches of {batch:,}")
    own, cpu = best[ONCE]
    for name, (clock, used) in best.items():
        table.add(
            Line(
                what=name,
                figure=f"{events / clock:,.0f}/s",
                ratio="" if name == ONCE else f"{clock / own:.2f} x",
                target="0.7 x" if name == STOCK else "",
                met=clock / own >= 0.7 if name == STOCK else None,
                beside=f"{events / used:,.0f} per CPU s ({used / cpu:.2f} x)",
            )
        )


if __name__ == "__main__":
    main()
