"""Patterns: the kernel from Parquet files, one a batch, so that no broker is waited for; matches go nowhere.

    python benchmarks/patterns.py [--rows N] [--batches N] [--laps N] [--only NAME] [--flink FOLDER]

Every row enters the kernel: what `where` would leave out before it is not counted. Timeouts are read by nobody. With
`--flink`, a folder with Flink's jars (benchmarks/rig/flink.py), its MATCH_RECOGNIZE finds the same in the same rows,
read from CSV, its state in memory and without checkpoints; how fast it reads alone stands beside.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import psutil
import pyspark.sql.functions as sf
from pyspark.sql import DataFrame
from pyspark.sql.classic.column import Column
from rig.flink import Flink, flink
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
    flink: str  # the same, in its words


MISSED = ("key text", "misses int", "at time")
FLINK_GUESSING = (
    "count(m.country) as a, cast(last(m.t) as string) as b {rest} pattern (m{{3}}) {within} define m as true"
)
FLINK_TRAVEL = (
    "last(l.country) as a, last(b.country) as b {rest} pattern (l x*? b) {within} "
    "define l as l.login, x as true, b as not b.login and b.country <> l.country"
)
RACES = (
    Race("three failed logins", 100_000, GUESSING, MISSED, 50_000, FLINK_GUESSING),
    Race("three failed logins", 1_000, GUESSING, MISSED, 150_000, FLINK_GUESSING),
    Race("login here, purchase there", 100_000, TRAVEL, ("key text", "here text", "there text"), 40_000, FLINK_TRAVEL),
)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--rows", type=int, default=1_000_000)
    asked.add_argument("--batches", type=int, default=8)
    asked.add_argument("--laps", type=int, default=3, help="the first warms the JIT compiler; the best counts")
    asked.add_argument("--only", default="", help="races whose name contains this")
    asked.add_argument("--flink", type=Path, help="a folder with apache-flink-libraries")
    given = asked.parse_args()
    with ExitStack() as undo:
        folder = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="headrace-patterns-")))
        home = {"home": str(folder / "home"), "spark.master": "local[2]", "spark.driver_memory": "3g"}
        spark = undo.enter_context(start(load(home), profile="live", app_name="patterns"))
        table = Table(f"Patterns: {given.rows:,} rows in {given.batches} batches over 170 min, within 5 min")
        races = [race for race in RACES if given.only in race.name]
        for number, race in enumerate(races):
            rows = folder / f"rows-{number}"
            _make(spark, rows, given.rows, race.keys, given.batches)
            table.add(_ours(spark, rows, race, given))
        if given.flink is None:
            print("Flink beside it: --flink FOLDER, after pip install --no-deps --target FOLDER apache-flink-libraries")
            return
        beside = undo.enter_context(flink(given.flink))
        for number, race in enumerate(races):
            table.add(_flinks(beside, spark, folder / f"rows-{number}", race, given))


def _ours(spark: Spark, rows: Path, race: Race, given: argparse.Namespace) -> Line:
    laps = [_timed(_kernel(spark, rows, race), rows.with_name("checkpoint")) for _ in range(given.laps)]
    clock, cpu, matches = (min(lap[n] for lap in laps) for n in range(3))
    return Line(
        what=f"{race.name}, {race.keys:,} keys",
        figure=f"{given.rows / clock:,.0f}/s",
        target=f"{race.aim:,}/s",
        met=given.rows / clock >= race.aim,
        beside=f"{given.rows / cpu:,.0f} per CPU s, {given.rows / given.batches / race.keys:.1f} rows a key and batch, "
        f"{matches:,.0f} matches",
    )


def _flinks(beside: Flink, spark: Spark, rows: Path, race: Race, given: argparse.Namespace) -> Line:
    """The first lap writes what it finds, to be counted; the others write nothing."""
    csv, found, name = (
        rows.with_name(f"{rows.name}-csv"),
        rows.with_name(f"{rows.name}-found"),
        rows.name.replace("-", "_"),
    )
    read = spark.session.read.parquet(str(rows)).orderBy("off").coalesce(1)
    read.select("key", "login", "country", sf.date_format("at", "yyyy-MM-dd HH:mm:ss.SSS")).write.csv(str(csv))
    columns = "k string, login boolean, country string, t timestamp(3), watermark for t as t - interval '20' second"
    beside.table(name, columns, connector="filesystem", path=csv.as_uri(), format="csv")
    beside.table(
        f"{name}_found", "k string, a string, b string", connector="filesystem", path=found.as_uri(), format="csv"
    )
    beside.table(f"{name}_none", "k string, a string, b string", connector="blackhole")
    measures = race.flink.format(
        rest="one row per match after match skip past last row", within="within interval '5' minute"
    )
    matching = f"match_recognize (partition by k order by t measures {measures})"
    query = f"select k, cast(a as string), b from {name} {matching}"
    reading = f"select k, country, cast(t as string) from {name}"
    beside.insert(f"{name}_found", query)
    matches = sum(len(file.read_text().splitlines()) for file in found.iterdir() if file.is_file())
    clock, cpu = min(beside.insert(f"{name}_none", query) for _ in range(given.laps - 1))
    alone, _ = min(beside.insert(f"{name}_none", reading) for _ in range(given.laps - 1))
    return Line(
        what=f"Flink: {race.name}, {race.keys:,} keys",
        figure=f"{given.rows / clock:,.0f}/s",
        beside=f"{given.rows / cpu:,.0f} per CPU s, {matches:,} matches; reading alone {given.rows / alone:,.0f}/s",
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


def _kernel(spark: Spark, rows: Path, race: Race) -> DataFrame:
    schema = "key string, time long, login boolean, country string, off long, before long, at timestamp"
    source = spark.session.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(rows))
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


def _timed(frame: DataFrame, checkpoint: Path) -> tuple[float, float, int]:
    """Seconds by the clock, and of processor time in this process and its JVM; how many matches came."""
    counted = frame.observe("given", sf.count(sf.lit(1)).alias("rows"))
    writer = counted.writeStream.format("noop").outputMode("update").option("checkpointLocation", str(checkpoint))
    began, busy = monotonic(), _processor()
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    clock, cpu = monotonic() - began, _processor() - busy
    shutil.rmtree(checkpoint, ignore_errors=True)
    return clock, cpu, sum(batch.observedMetrics["given"].rows for batch in query.recentProgress)


def _processor() -> float:
    """Of this process and those it started."""
    own = psutil.Process()
    return sum(sum(one.cpu_times()[:2]) for one in (own, *own.children(recursive=True)))


if __name__ == "__main__":
    main()
