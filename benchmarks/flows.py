"""Windows from Kafka to Kafka: whole flows over history, beside Spark's stock connector and its own aggregation.

    python benchmarks/flows.py [--events N] [--laps N] [--only NAME]

Ours is the product's own way: a declared app, run over history. Stock reads with its connector, from_json,
withWatermark, groupBy(window), to_json, and writes with its connector in append mode, so that both write each window
once. They take turns in JVMs of their own; the best lap counts.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rig import payments, spark
from rig.history import read_through
from rig.table import Line, Table

import headrace as hr
from headrace.base.ids import random_id
from headrace.base.settings import Settings
from headrace.log import topics
from headrace.log.broker import Broker
from headrace.model.topic import Topic
from headrace.observe.snapshot import FlowSnapshot

LATENESS = "0 s"  # Spark corrects nothing either


@dataclass(frozen=True, slots=True)
class Race:
    """A window in our words and, where Spark has it, in its own. `least`: events a second that are aimed at."""

    name: str
    window: Callable[[], Any]
    native: str = ""
    least: int = 0


RACES = (
    Race("tumbling 10 min", lambda: hr.tumbling("10 min"), "window(e.at, '10 minutes')", 100_000),
    Race("hopping 1 h every 5 min", lambda: hr.hopping("1 h", every="5 min"), "window(e.at, '1 hour', '5 minutes')"),
    Race("session gap 1 min", lambda: hr.session(gap="1 min"), "session_window(e.at, '1 minute')"),
    Race("sliding 10 min, per event", lambda: hr.sliding("10 min"), "", 80_000),
)


def run_ours(broker: Broker, settings: Settings, topic: str, number: int) -> dict[str, Any]:
    """The flow over all of the topic; what it told about its batches."""
    app = hr.App("bench", version=f"v{random_id()[:8]}")
    stream = app.stream(payments.payment(topic), disorder=payments.DISORDER)
    windows = stream.window(RACES[number].window(), lateness=LATENESS)
    out = f"{app.version}-out"
    windows.agg(spent=hr.sum("amount"), times=hr.count()).to(app.topic(out, partitions=payments.PARTITIONS))
    told: list[FlowSnapshot] = []
    read_through(app, broker, settings, told.append)
    batches = {s.batch: s for s in told if s.batch >= 0}
    return _told([s.rows for s in batches.values()], max(s.state_keys for s in batches.values()), out)


def run_stock(broker: Broker, settings: Settings, topic: str, number: int) -> dict[str, Any]:
    import pyspark.sql.functions as sf

    out = f"stock-{random_id()[:8]}"
    topics.ensure(broker, Topic(name=out, partitions=payments.PARTITIONS))
    kafka = {"kafka.bootstrap.servers": broker.bootstrap}
    read = spark.session().session.readStream.format("kafka").options(**kafka).option("subscribe", topic)
    read = read.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", 100_000).load()
    decoded = read.select(sf.from_json(sf.col("value").cast("string"), payments.JSON).alias("e"))
    timed = decoded.select("e.*").withWatermark("at", "20 seconds")
    window = sf.expr(RACES[number].native.replace("e.at", "at"))
    by_key = timed.groupBy(window.alias("w"), "card_id").agg(
        sf.sum("amount").alias("spent"), sf.count("*").alias("times")
    )
    written = by_key.select(
        sf.col("card_id").alias("key"),
        sf.to_json(sf.struct("card_id", "w.start", "w.end", "spent", "times")).alias("value"),
    )
    query = (
        written.writeStream.format("kafka").options(**kafka).option("topic", out).outputMode("append")
        .option("checkpointLocation", str(settings.home / out)).trigger(availableNow=True).start()
    )  # fmt: skip
    query.awaitTermination()
    batches = [p for p in query.recentProgress if p["numInputRows"]]
    return _told([p["numInputRows"] for p in batches], 0, out)  # neither side lets Spark count rows of state: it costs


def _told(rows: list[int], keys: int, out: str) -> dict[str, Any]:
    full = [n for n in rows if n]
    return {"batch": sum(full) // max(len(full), 1), "batches": len(rows), "keys": keys, "out": out}


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--events", type=int, default=2_000_000)
    asked.add_argument("--laps", type=int, default=2)
    asked.add_argument("--only", default="")
    asked.add_argument("--no-stock", action="store_true")
    given = asked.parse_args()
    table = Table(f"Kafka to Kafka: sum and count of {given.events:,} payments, {payments.PARTITIONS} partitions")
    with payments.log() as (settings, broker), spark.ours(settings) as ours, spark.stock(settings) as stock:
        for keys in (10_000, given.events // 2):
            topic = f"payments-{keys}"
            payments.fill(broker, topic, given.events, keys)
            for number, race in enumerate(RACES):
                if not race.name.startswith(given.only) or (keys > 10_000 and number > 0):
                    continue
                best: dict[str, spark.Spent] = {}
                for _ in range(given.laps):
                    for name, worker, work in (("ours", ours, run_ours), ("stock", stock, run_stock)):
                        if name == "stock" and (given.no_stock or not race.native):
                            continue
                        spent = worker.run(work, broker, settings, topic, number)
                        spent.gave["written"] = payments.counted(broker, spent.gave["out"])
                        topics.delete(broker, spent.gave["out"])
                        if name not in best or spent.clock < best[name].clock:
                            best[name] = spent
                show(table, race, keys, given.events, best)


def show(table: Table, race: Race, keys: int, events: int, best: dict[str, spark.Spent]) -> None:
    own = best["ours"]
    for name, spent in best.items():
        told = spent.gave
        rows = told["batch"] / min(keys, told["batch"])
        ours = name == "ours"
        table.add(
            Line(
                what=f"{name}: {race.name}, {keys:,} keys",
                figure=f"{events / spent.clock:,.0f}/s",
                ratio="" if ours else f"{spent.clock / own.clock:.1f} x",
                target=f"{race.least:,}/s" if ours and race.least else "",
                met=events / spent.clock >= race.least if ours and race.least else None,
                beside=f"{events / spent.cpu:,.0f} per CPU s"
                + ("" if ours else f" ({spent.cpu / own.cpu:.1f} x)")
                + f", {told['batches']} batches of {told['batch']:,}, {rows:.1f} rows per key and batch,"
                + (f" up to {told['keys']:,} state keys," if ours else "")
                + f" {told['written']:,} written",
            )
        )


if __name__ == "__main__":
    main()
