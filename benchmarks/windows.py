"""Windows: the kernels beside Spark's own aggregation, from the same rows, in the same session, one after the other.

Rows come from Parquet files, one a batch, so that neither side waits for a broker; results go nowhere.
Run: python benchmarks/windows.py [rows] [keys] [batches]
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import pyspark.sql.functions as sf
from pyspark.sql import DataFrame
from pyspark.sql.classic.column import Column

from headrace.base.settings import load
from headrace.spark.session import Spark, start
from headrace.steps import aggregate, session, slices, sliding

MINUTE = 60_000_000
SPAN = 170 * MINUTE  # of event time, in all
AGGREGATES = (
    aggregate.Spec(name="spent", kind="sum", of="decimal", scale=2, precision=28),
    aggregate.Spec(name="times", kind="count"),
)


@dataclass(frozen=True, slots=True)
class Race:
    """The same window for both: a step's spec, and Spark's own words for it (None: Spark has none)."""

    name: str
    spec: Any
    native: Callable[[DataFrame], DataFrame] | None
    aim: float  # times Spark's own; without that, rows a second


RACES = (
    Race("tumbling 10 min", slices.Spec(size=10 * MINUTE, every=10 * MINUTE, aggregates=AGGREGATES),
         lambda f: _grouped(f, sf.window("at", "10 minutes")), 2),
    Race("hopping 1 h every 5 min", slices.Spec(size=60 * MINUTE, every=5 * MINUTE, aggregates=AGGREGATES),
         lambda f: _grouped(f, sf.window("at", "1 hour", "5 minutes")), 2),
    Race("session gap 1 min", session.Spec(gap=MINUTE, aggregates=AGGREGATES),
         lambda f: _grouped(f, sf.session_window("at", "1 minute")), 2),
    Race("sliding 10 min", sliding.Spec(size=10 * MINUTE, aggregates=AGGREGATES), None, 80_000),
)  # fmt: skip


def main(rows: int = 2_000_000, keys: int = 10_000, batches: int = 8) -> None:
    folder = Path(tempfile.mkdtemp(prefix="headrace-windows-"))
    home = {"home": str(folder / "home"), "spark.master": "local[2]", "spark.driver_memory": "3g"}
    try:
        with start(load(home), profile="live", app_name="windows") as spark:
            _make(spark, folder / "rows", rows, keys, batches)
            print(f"{rows:,} rows, {keys:,} keys, {batches} batches, {rows // batches // keys} rows per key and batch")
            print(f"{'window':26}{'kernel rows/s':>15}{'Spark rows/s':>15}{'ratio':>8}{'aim':>9}")
            for race in RACES:
                _run(spark, folder, race, rows)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(spark: Spark, folder: Path, race: Race, rows: int) -> None:
    best = {"kernel": 0.0, "native": 0.0}
    for lap in range(3):  # the first warms the JIT compiler; the best counts
        for side in best:
            made = _kernel(spark, folder, race) if side == "kernel" else _native(spark, folder, race)
            if made is not None:
                took = _timed(made, folder / f"{race.name}-{side}-{lap}".replace(" ", "-"))
                best[side] = max(best[side], rows / took)
    native = best["native"]
    ratio = f"{best['kernel'] / native:.1f} x" if native else ""
    aim = f"{race.aim:.0f} x" if native else f"{race.aim:,.0f}"
    print(f"{race.name:26}{best['kernel']:15,.0f}{native or 0:15,.0f}{ratio:>8}{aim:>9}", flush=True)


def _make(spark: Spark, folder: Path, rows: int, keys: int, batches: int) -> None:
    """Rows in order of time but for 20 s of disorder; one file a batch, and one more to close what is open."""
    each = rows // batches
    for batch in range(batches + 1):
        made = (
            spark.session.range(batch * each, batch * each + (each if batch < batches else 1), 1, 1)
            .select(
                sf.pmod(sf.xxhash64("id"), sf.lit(keys)).alias("k"),
                (sf.col("id") * (SPAN // rows) - sf.pmod(sf.xxhash64(sf.col("id") + 1), sf.lit(20_000_000))).alias(
                    "time"
                ),
                sf.pmod(sf.xxhash64(sf.col("id") + 2), sf.lit(100_000)).alias("cents"),
                sf.col("id").alias("off"),
            )
            .select(
                sf.concat(sf.lit("card-"), "k").alias("key"),
                "time",
                (sf.col("cents") / 100).cast("decimal(18,2)").alias("amount"),
                "off",
                sf.timestamp_micros("time").alias("at"),
                sf.lit(batch * each * (SPAN // rows) // 1_000 - 20_000).alias("before"),
            )
        )
        made.repartition(2, "key").write.mode("append").option("parquet.enable.dictionary", "false").parquet(str(folder))


def _source(spark: Spark, folder: Path) -> DataFrame:
    schema = "key string, time long, amount decimal(18,2), off long, at timestamp, before long"
    return spark.session.readStream.schema(schema).option("maxFilesPerTrigger", 2).parquet(str(folder / "rows"))


def _grouped(frame: DataFrame, window: Any) -> DataFrame:
    by_key = frame.withWatermark("at", "20 seconds").groupBy(window, "key")
    return by_key.agg(sf.sum("amount").alias("spent"), sf.count(sf.lit(1)).alias("times"))


def _native(spark: Spark, folder: Path, race: Race) -> DataFrame | None:
    return None if race.native is None else race.native(_source(spark, folder))


def _kernel(spark: Spark, folder: Path, race: Race) -> DataFrame:
    nothing = sf.lit(None).cast("binary").alias("id")
    frame = _source(spark, folder).withWatermark("at", "20 seconds").select(
        sf.lit(1).alias("step"), sf.lit(0).alias("port"), sf.col("key").cast("binary").alias("key"), "time", "before",
        sf.lit(0).alias("src"), sf.lit(0).alias("part"), "off", nothing,
        Column(spark.jvm.Chain.pack(sf.struct("key", "amount")._jc)).alias("payload"),
    )  # fmt: skip
    names = (
        "key text",
        "window_start time",
        "window_end time",
        "kind text",
        "revision int",
        "spent decimal(28, 2)",
        "times int",
    )
    step = {
        "ordinal": 1,
        "name": "window",
        "hold_ms": 0,
        "spec": race.spec.as_json(),
        "inputs": [[_field("k0 text"), _field("a0 decimal(18, 2)")]],
        "output": [_field(name) for name in names],
        "keys": 1,
        "emits": [],
    }
    spec = {"app": "bench", "version": "1", "topics": ["rows"], "by_clock": False, "steps": [step]}
    return DataFrame(spark.jvm.Stage.apply(frame._jdf, json.dumps(spec), {}), spark.session)


def _field(text: str) -> dict[str, Any]:
    name, kind = text.split(" ", 1)
    return {"name": name, "type": kind, "nullable": True}


def _timed(frame: DataFrame, checkpoint: Path) -> float:
    """Both in update mode, but Spark's sessions, which have only append."""
    mode = "append" if "session-gap" in checkpoint.name and "native" in checkpoint.name else "update"
    began = monotonic()
    query = (
        frame.writeStream.format("noop").outputMode(mode).option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True).start()
    )  # fmt: skip
    query.awaitTermination()
    took = monotonic() - began
    shutil.rmtree(checkpoint, ignore_errors=True)
    return took


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
