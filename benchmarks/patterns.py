"""Patterns: the kernel from Parquet files, one a batch, so that no broker is waited for; matches go nowhere.

Every row enters the kernel: what `where` would leave out before it is not counted. Timeouts are read by nobody.
Run: python benchmarks/patterns.py [rows] [batches] [laps]
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import psutil
import pyspark.sql.functions as sf
from pyspark.sql import DataFrame
from pyspark.sql.classic.column import Column
from rig.table import Line, Table

from headrace.base.settings import load
from headrace.spark.session import Spark, start
from headrace.steps.pattern_slots import Slot
from headrace.steps.pattern_state import Spec
from headrace.steps.pattern_steps import FIRST, THEN, Criterion, Step

MINUTE = 60_000_000
START = 1_000_000 * MINUTE
SPAN = 170 * MINUTE  # of event time, in all
LAYOUT = ("miss bool", "login bool", "buy bool", "key text", "country text", "at time")
KEY, COUNTRY, AT = 3, 4, 5


def _slot(fn: str, step: str, column: int | None = None, of: str = "text") -> Slot:
    return Slot(fn=fn, step=step, column=column, of=of)


GUESSING = Spec(
    steps=(Step(name="miss", how=FIRST, criterion=Criterion(flag=0), least=3, most=3),),
    within=5 * MINUTE,
    output=(_slot("first", "miss", KEY), _slot("count", "miss"), _slot("last", "miss", AT, "time")),
)
TRAVEL = Spec(
    steps=(
        Step(name="login", how=FIRST, criterion=Criterion(flag=1)),
        Step(name="buy", how=THEN, criterion=Criterion(flag=2, condition=0)),
    ),
    within=5 * MINUTE,
    asks=((_slot("last", "login", COUNTRY),),),
    output=(_slot("first", "login", KEY), _slot("last", "login", COUNTRY), _slot("last", "buy", COUNTRY)),
)


@dataclass(frozen=True, slots=True)
class Race:
    name: str
    keys: int
    spec: Spec
    output: tuple[str, ...]
    aim: int  # rows a second


RACES = (
    Race("three failed logins", 100_000, GUESSING, ("key text", "misses int", "at time"), 50_000),
    Race("three failed logins", 1_000, GUESSING, ("key text", "misses int", "at time"), 150_000),
    Race("login here, purchase there", 100_000, TRAVEL, ("key text", "here text", "there text"), 40_000),
)


def main(rows: int = 1_000_000, batches: int = 8, laps: int = 3) -> None:
    folder = Path(tempfile.mkdtemp(prefix="headrace-patterns-"))
    home = {"home": str(folder / "home"), "spark.master": "local[2]", "spark.driver_memory": "3g"}
    try:
        with start(load(home), profile="live", app_name="patterns") as spark:
            table = Table(f"Patterns: {rows:,} rows in {batches} batches over 170 min of event time, within 5 min")
            for race in RACES:
                table.add(_run(spark, folder, race, rows, batches, laps))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(spark: Spark, folder: Path, race: Race, rows: int, batches: int, laps: int) -> Line:
    _make(spark, folder / "rows", rows, race.keys, batches)
    clock, cpu = 1e9, 1e9
    for _ in range(laps):  # the first warms the JIT compiler; the best counts
        took, busy = _timed(_kernel(spark, folder, race), folder / "checkpoint")
        clock, cpu = min(clock, took), min(cpu, busy)
    shutil.rmtree(folder / "rows")
    return Line(
        what=f"{race.name}, {race.keys:,} keys",
        figure=f"{rows / clock:,.0f}/s",
        target=f"{race.aim:,}/s",
        met=rows / clock >= race.aim,
        beside=f"{rows / cpu:,.0f} per CPU s, {rows / batches / race.keys:.1f} rows a key and batch",
    )


def _make(spark: Spark, folder: Path, rows: int, keys: int, batches: int) -> None:
    """Rows in order of time but for 20 s of disorder; one file a batch, and one more to close what is open."""
    each = rows // batches

    def chance(salt: int, of: int) -> Any:
        return sf.pmod(sf.xxhash64(sf.col("id") + salt), sf.lit(of))

    for batch in range(batches + 1):
        made = spark.session.range(batch * each, batch * each + (each if batch < batches else 1), 1, 1).select(
            sf.concat(sf.lit("customer-"), chance(0, keys)).alias("key"),
            (sf.lit(START) + sf.col("id") * (SPAN // rows) - chance(1, 20_000_000)).alias("time"),
            (chance(2, 2) == 0).alias("login"),
            sf.concat(sf.lit("C"), chance(3, 20)).alias("country"),
            sf.col("id").alias("off"),
            # Rows are judged under the watermark of the batch before (rule R1), or a little less.
            sf.lit((START + (batch - 1) * each * (SPAN // rows)) // 1_000 - 21_000).alias("before"),
        )
        made.select("*", sf.timestamp_micros("time").alias("at")).write.mode("append").parquet(str(folder))


def _kernel(spark: Spark, folder: Path, race: Race) -> DataFrame:
    schema = "key string, time long, login boolean, country string, off long, before long, at timestamp"
    source = spark.session.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "rows"))
    layout = sf.struct(sf.lit(True).alias("miss"), "login", (~sf.col("login")).alias("buy"), "key", "country", "at")
    frame = source.withWatermark("at", "20 seconds").select(
        sf.lit(1).alias("step"), sf.lit(0).alias("port"), sf.col("key").cast("binary").alias("key"), "time", "before",
        sf.lit(0).alias("src"), sf.lit(0).alias("part"), "off", sf.lit(None).cast("binary").alias("id"),
        Column(spark.jvm.Chain.pack(layout._jc)).alias("payload"),
    )  # fmt: skip
    step = {
        "ordinal": 1,
        "name": "pattern",
        "hold_ms": 0,
        "spec": race.spec.as_json(),
        "inputs": [_fields(LAYOUT)],
        "ports": {"0": _fields(race.output)},
        "emits": [0],
        "asked": [_fields(("login_country text",)) for _ in race.spec.asks],
    }
    spec = {"app": "bench", "version": "1", "topics": ["rows"], "by_clock": False, "steps": [step]}
    elsewhere = [(sf.col("country") != sf.col("login_country"))._jc for _ in race.spec.asks]
    return DataFrame(spark.jvm.Stage.apply(frame._jdf, json.dumps(spec), {1: elsewhere}), spark.session)


def _fields(columns: tuple[str, ...]) -> list[dict[str, Any]]:
    return [{"name": name, "type": kind, "nullable": True} for name, kind in (text.split(" ", 1) for text in columns)]


def _timed(frame: DataFrame, checkpoint: Path) -> tuple[float, float]:
    """Seconds by the clock, and of processor time in this process and its JVM."""
    began, busy = monotonic(), _processor()
    query = (
        frame.writeStream.format("noop").outputMode("update").option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True).start()
    )  # fmt: skip
    query.awaitTermination()
    took = monotonic() - began, _processor() - busy
    shutil.rmtree(checkpoint, ignore_errors=True)
    return took


def _processor() -> float:
    """Of this process and those it started."""
    own = psutil.Process()
    return sum(sum(one.cpu_times()[:2]) for one in (own, *own.children(recursive=True)))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
