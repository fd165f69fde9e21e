"""Joins: the kernels beside Spark's own joins, from the same rows, in the same session, one after the other.

    python benchmarks/joins.py [--events N] [--batches N] [--laps N] [--only NAME]

Rows come from Parquet files, one a batch, so that nobody waits for a broker; what is joined goes nowhere. Of an
interval join the events of both sides count; beside it stands Spark's stream-stream join. Tables are loaded first, and
only events are timed; beside them stands Spark's join of the stream with a static table, which keeps no state and is
the ceiling.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil
import pyspark.sql.functions as sf
from pyspark.sql import DataFrame
from pyspark.sql.classic.column import Column
from rig.spark import as_shipped
from rig.table import Line, Table

from headrace.base.settings import load
from headrace.spark.session import Spark, start
from headrace.steps import as_of, current, interval_join

MINUTE = 60_000_000
BOUND = 10 * MINUTE
SPAN = 120 * MINUTE  # of event time, over all events
DISORDER = 20_000_000
HOT = 10_000
KEYS, VERSIONS = 100_000, 10
SCHEMA = (
    "side int, key string, time long, amount decimal(18,2), note string, off long, at timestamp, "
    "mark timestamp, before long"
)
COLUMNS = ("key text", "amount decimal(18, 2)", "note text", "at time")
NONE = -(2**63)
START = 1_700_000_000_000_000


@dataclass(frozen=True, slots=True, order=True)
class Spent:
    """Seconds on the clock, and of CPU in the JVM; how many rows came out."""

    clock: float
    cpu: float
    gave: int


@dataclass(frozen=True, slots=True)
class Race:
    """`target`: times Spark's own for two streams, events a second for a table."""

    name: str
    rows: str  # the folder
    spec: Any
    native: Callable[[Bench], DataFrame]
    target: float


@dataclass(frozen=True, slots=True)
class Bench:
    spark: Spark
    folder: Path
    events: int
    batches: int

    def source(self, rows: str) -> DataFrame:
        read = self.spark.session.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        return read.parquet(str(self.folder / rows))


def interval(how: str) -> Any:
    return interval_join.Spec(how=how, lower=0, upper=BOUND)


def streams(keys: str, how: str) -> Callable[[Bench], DataFrame]:
    """Spark's own join, each side from files of its own."""

    def made(bench: Bench) -> DataFrame:
        one, other = (
            bench.source(f"{keys}-{side}").withWatermark("at", "20 seconds").select(
                *(sf.col(name).alias(f"{side}_{name}") for name in ("key", "amount", "note", "at"))
            )
            for side in ("left", "right")
        )  # fmt: skip
        within = "right_at >= left_at and right_at <= left_at + interval 10 minutes"
        return one.join(other, sf.expr(f"left_key = right_key and {within}"), how)

    return made


def static(bench: Bench) -> DataFrame:
    """Spark's own join with the latest version of every key."""
    versions = bench.spark.session.read.parquet(str(bench.folder / "versions")).where(f"off % {VERSIONS} = 0")
    table = versions.select("key", *(sf.col(name).alias(f"t_{name}") for name in ("amount", "note", "at")))
    return bench.source("events").select("key", "amount", "note", "at").join(table, "key", "left")


RACES = (
    Race("interval inner, near-distinct keys", "distinct", interval("inner"), streams("distinct", "inner"), 1.5),
    Race("interval left, near-distinct keys", "distinct", interval("left"), streams("distinct", "left"), 0),
    Race(f"interval inner, {HOT:,} keys", "hot", interval("inner"), streams("hot", "inner"), 1.5),
    Race(f"interval left, {HOT:,} keys", "hot", interval("left"), streams("hot", "left"), 0),
    Race("enrich as of, 100,000 keys x 10", "events", as_of.Spec(history=60 * 24 * MINUTE), static, 80_000),
    Race("enrich current, 100,000 keys", "events", current.Spec(keep=60 * 24 * MINUTE), static, 100_000),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=1_000_000, help="of each stream")
    parser.add_argument("--batches", type=int, default=8)
    parser.add_argument("--laps", type=int, default=3, help="the first warms the JIT compiler; the best counts")
    parser.add_argument("--only", default="", help="races whose name contains this")
    asked = parser.parse_args()
    with TemporaryDirectory(prefix="headrace-joins-") as home:
        told = {"home": f"{home}/home", "spark.master": "local[2]", "spark.driver_memory": "3g"}
        with start(load(told), profile="live", app_name="joins") as spark:
            bench = Bench(spark, Path(home), asked.events, asked.batches)
            table = Table(f"Joins, {asked.events:,} events of each stream in {asked.batches} batches")
            races = [race for race in RACES if asked.only in race.name]
            for rows in {race.rows for race in races}:
                _make(bench, rows)
            for race in races:
                _run(bench, race, asked.laps, table)


def _run(bench: Bench, race: Race, laps: int, table: Table) -> None:
    best: dict[str, Spent] = {}
    for lap in range(laps):
        for side in ("kernel", "native"):
            checkpoint = bench.folder / f"checkpoint-{side}-{lap}"
            if side == "kernel":
                took = _kernel(bench, race, checkpoint)
            else:
                with as_shipped(bench.spark):
                    took = _timed(bench, race.native(bench), checkpoint)
            best[side] = min(best.get(side, took), took)
            shutil.rmtree(checkpoint)
    # Of Spark's outer joins rows without partner are still waiting when the input ends.
    same = {spent.gave for spent in best.values()}
    assert "left" in race.name or len(same) == 1, f"both must give the same rows: {same}"
    events = bench.events * (1 if race.rows == "events" else 2)
    ours, native = (events / best[side].clock for side in ("kernel", "native"))
    rate = race.target > 10
    target = "" if not race.target else f"{race.target:,.0f}/s" if rate else f"{race.target} x"
    met = None if not race.target else (ours if rate else ours / native) >= race.target
    told = [f"{events / best[side].cpu:,.0f}" for side in ("kernel", "native")]
    beside = f"{best['kernel'].gave:,} rows, per CPU s {told[0]}, Spark's own {told[1]}"
    line = Line(what=race.name, figure=f"{ours:,.0f}/s", ratio=f"{ours / native:.2f} x", target=target, met=met)
    table.add(replace(line, beside=beside))


def _kernel(bench: Bench, race: Race, checkpoint: Path) -> Spent:
    """Files are linked into a folder of the lap's own: a table's versions are there and taken before the events are."""
    rows = checkpoint.with_name(f"{checkpoint.name}-rows")
    rows.mkdir()
    frame = _staged(bench, race, bench.source(rows.name))
    if race.rows == "events":
        _link(bench.folder / "versions", rows)
        _timed(bench, frame, checkpoint)
    _link(bench.folder / race.rows, rows)
    took = _timed(bench, frame, checkpoint)
    shutil.rmtree(rows)
    return took


def _link(files: Path, folder: Path) -> None:
    for file in files.glob("*.parquet"):
        (folder / file.name).hardlink_to(file)


def _timed(bench: Bench, frame: DataFrame, checkpoint: Path) -> Spent:
    """What the batches took, without the query's start. Outer joins of Spark's own have only append mode."""
    cpu = _cpu(bench.spark)
    mode = "append" if "native" in checkpoint.name else "update"
    counted = frame.observe("given", sf.count(sf.lit(1)).alias("rows"))
    writer = counted.writeStream.format("noop").outputMode(mode).option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    took = sum(batch.durationMs["triggerExecution"] for batch in query.recentProgress) / 1_000
    gave = sum(batch.observedMetrics["given"].rows for batch in query.recentProgress)
    return Spent(took, _cpu(bench.spark) - cpu, gave)


def _cpu(spark: Spark) -> float:
    used = psutil.Process(spark.gateway.process.pid).cpu_times()
    return float(used.user + used.system)


def _staged(bench: Bench, race: Race, source: DataFrame) -> DataFrame:
    """The chain as the compiler makes it, and one stage."""
    payload = Column(bench.spark.jvm.Chain.pack(sf.struct("key", "amount", "note", "at")._jc))
    frame = source.withWatermark("mark", "20 seconds").select(
        sf.lit(1).alias("step"), sf.col("side").alias("port"), sf.col("key").cast("binary").alias("key"), "time",
        "before", sf.col("side").alias("src"), sf.lit(0).alias("part"), "off",
        sf.lit(None).cast("binary").alias("id"), payload.alias("payload"),
    )  # fmt: skip
    columns = [dict(zip(("name", "type"), text.split(" ", 1), strict=True)) for text in COLUMNS]
    step = {
        "ordinal": 1,
        "name": "join",
        "hold_ms": 0,
        "spec": race.spec.as_json(),
        "inputs": [columns, columns],
        "ports": {0: columns + columns},
        "emits": [0],
    }
    spec = {"app": "bench", "version": "1", "topics": ["left", "right"], "by_clock": False, "steps": [step]}
    return DataFrame(bench.spark.jvm.Stage.apply(frame._jdf, json.dumps(spec), {}), bench.spark.session)


def _make(bench: Bench, rows: str) -> None:
    """One file a batch, and one that moves time on when all have come."""
    if rows == "events":
        key, number = sf.floor(sf.col("id") / VERSIONS), sf.col("id") % VERSIONS
        versions = bench.spark.session.range(0, KEYS * VERSIONS, 1, 1)
        made = _columns(bench, -1, versions, 1, key, START - (number + 1) * MINUTE)
        _write(made, bench.folder / "versions")
    for batch in range(bench.batches + 1):
        if rows == "events":
            _write(_batch(bench, batch, 0, sf.pmod(sf.xxhash64("id"), sf.lit(KEYS))), bench.folder / rows)
        else:
            sides = [_batch(bench, batch, side, _key(bench, rows, side)) for side in (0, 1)]
            for name, made in zip(("left", "right"), sides, strict=True):
                _write(made, bench.folder / f"{rows}-{name}")
            _write(sides[0].union(sides[1]).coalesce(1), bench.folder / rows)


def _write(frame: DataFrame, folder: Path) -> None:
    frame.write.mode("append").parquet(str(folder))


def _key(bench: Bench, rows: str, side: int) -> Any:
    """Of a right row: the key of a left row at most the bound before it; one in ten has a key of its own."""
    within = BOUND * bench.events // SPAN
    number = sf.col("id") - (sf.pmod(sf.xxhash64(sf.col("id") + 3), sf.lit(within)) if side else 0)
    key = number if rows == "distinct" else sf.pmod(sf.xxhash64(number), sf.lit(HOT))
    lonely = sf.pmod(sf.xxhash64(sf.col("id") + 4), sf.lit(10)) == side - 1
    return sf.when(lonely, -key - 1).otherwise(key)


def _batch(bench: Bench, batch: int, side: int, key: Any) -> DataFrame:
    """Rows in order of time but for some seconds."""
    last = batch == bench.batches
    first = batch * bench.events // bench.batches
    made = bench.spark.session.range(first, first + (1 if last else bench.events // bench.batches), 1, 1)
    jitter = sf.pmod(sf.xxhash64(sf.col("id") + 1), sf.lit(DISORDER))
    time = START + sf.col("id") * (SPAN // bench.events) - jitter + (2 * BOUND if last else 0)
    return _columns(bench, batch, made, side, key, time)


def _columns(bench: Bench, batch: int, frame: DataFrame, side: int, key: Any, time: Any) -> DataFrame:
    """Spark meets the times of a batch in the next one, the log source in the same. So that the kernel meets time as
    it does behind the log source, `mark` is where the next batch ends; `before` is the watermark before this one."""
    cents = sf.pmod(sf.xxhash64(sf.col("id") + 2), sf.lit(100_000))
    ends = [START + n * (SPAN // bench.batches) for n in (batch, batch + 2)]
    before = (ends[0] - DISORDER) // 1_000 if batch > 0 else NONE
    return frame.select("id", key.alias("k"), time.cast("long").alias("time"), cents.alias("cents")).select(
        sf.lit(side).alias("side"), sf.concat(sf.lit("key-"), "k").alias("key"), "time",
        (sf.col("cents") / 100).cast("decimal(18,2)").alias("amount"), sf.concat(sf.lit("note "), "id").alias("note"),
        sf.col("id").alias("off"), sf.timestamp_micros("time").alias("at"),
        sf.timestamp_micros(sf.lit(ends[1] + (2 * BOUND if batch == bench.batches - 1 else 0))).alias("mark"),
        sf.lit(before).cast("long").alias("before"),
    )  # fmt: skip


if __name__ == "__main__":
    main()
