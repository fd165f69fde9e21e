"""Windows: the kernels beside Spark's own aggregation, from the same rows, taking turns.

    python benchmarks/windows.py [--rows N] [--laps N] [--only NAME]

Rows come from Parquet files as they would from a topic of two partitions: two files a batch, a key always in the same
one. So neither side waits for a broker, and the source is as cheap as it gets. Both give every window once, when it is
closed, to a sink that drops it; both keep state in RocksDB, in the same number of partitions. The best lap counts.

Spark's own runs twice: as it comes, in a JVM of its own, which is what one has without Headrace; and in our session,
with our settings and file system, which says how much of the difference is the kernels'.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyspark.sql.functions as sf
from pyspark.sql import DataFrame
from pyspark.sql.classic.column import Column
from rig import spark
from rig.table import Line, Table

from headrace.base.settings import load
from headrace.spark.session import Spark
from headrace.steps import aggregate, session, slices, sliding

MINUTE = 60_000_000
START = 1_772_496_000_000_000  # 3 March 2026, micros
SPAN = 170 * MINUTE  # of event time, in all
PARTITIONS = 2
KERNEL, RAW, TUNED = "kernel", "Spark as it comes", "Spark, our settings"
AGGREGATES = (
    aggregate.Spec(name="spent", kind="sum", of="decimal", scale=2, precision=28),
    aggregate.Spec(name="times", kind="count"),
)


@dataclass(frozen=True, slots=True)
class Race:
    """The same window for both: a step's spec, and Spark's own words for it (None: Spark has none)."""

    name: str
    spec: Any
    native: Callable[[], Any] | None
    keys: int = 10_000
    batches: int = 8
    share: int = 1  # of the rows, one in so many
    least: float = 0  # times Spark as it comes; without that, rows a second


def tumbling(minutes: int, **more: Any) -> Race:
    size = minutes * MINUTE
    spec = slices.Spec(size=size, every=size, aggregates=AGGREGATES)
    return Race(f"tumbling {minutes} min", spec, lambda: sf.window("at", f"{minutes} minutes"), **more)


HOPPING = slices.Spec(size=60 * MINUTE, every=5 * MINUTE, aggregates=AGGREGATES)
RACES = (
    tumbling(10, least=2),
    tumbling(10, least=2, batches=2),
    tumbling(1),
    tumbling(10, keys=100),
    tumbling(10, keys=250_000, share=4),
    Race("hopping 1 h every 5 min", HOPPING, lambda: sf.window("at", "1 hour", "5 minutes"), share=2, least=2),
    Race("session gap 1 min", session.Spec(gap=MINUTE, aggregates=AGGREGATES),
         lambda: sf.session_window("at", "1 minute"), share=2, least=2),
    Race("sliding 10 min, per event", sliding.Spec(size=10 * MINUTE, aggregates=AGGREGATES), None, least=80_000),
)  # fmt: skip


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--rows", type=int, default=2_000_000)
    asked.add_argument("--laps", type=int, default=8, help="the first ones warm the JIT compiler")
    asked.add_argument("--only", default="")
    given = asked.parse_args()
    table = Table(f"windows from files: sum and count over {SPAN // MINUTE} minutes", wide=48)
    with TemporaryDirectory(prefix="headrace-windows-") as home:
        settings = load({"home": home, "spark.master": "local[2]", "spark.driver_memory": "3g"}, env={})
        with spark.ours(settings) as ours, spark.raw(settings) as raw:
            workers = {KERNEL: ours, RAW: raw, TUNED: ours}
            for number, race in enumerate(RACES):
                if not race.name.startswith(given.only):
                    continue
                rows, folder = given.rows // race.share, Path(home) / f"{race.keys}-{race.batches}-{race.share}"
                if not folder.exists():
                    ours.run(make, folder, rows, race.keys, race.batches)
                best: dict[str, spark.Spent] = {}
                for _ in range(given.laps):
                    for side in workers if race.native else (KERNEL,):
                        spent = workers[side].run(run, side, number, folder)
                        best[side] = min(best.get(side, spent), spent, key=lambda s: s.cpu)
                show(table, race, rows, best)


def show(table: Table, race: Race, rows: int, best: dict[str, spark.Spent]) -> None:
    """Ratios are those of CPU time: the clock says the same on a quiet machine, and nothing on a busy one."""
    assert len({spent.gave for spent in best.values()}) == 1, "all must give the same windows"
    own, batch, judged = best[KERNEL], rows // race.batches, RAW if race.native else KERNEL
    for side, spent in best.items():
        other = side != KERNEL
        ratio = spent.cpu / own.cpu if other else 0
        aim = race.least if side == judged else 0
        table.add(
            Line(
                what=f"{side}: {race.name}, {race.keys:,} keys",
                figure=f"{rows / spent.clock:,.0f}/s",
                ratio=f"{ratio:.2f} x" if other else "",
                target="" if not aim else f"{aim:.0f} x" if other else f"{aim:,.0f}/s",
                met=None if not aim else ratio >= aim if other else rows / spent.clock >= aim,
                beside=f"{rows / spent.cpu:,.0f} per CPU s"
                + (f" (clock {spent.clock / own.clock:.2f} x)" if other else "")
                + f", batches of {batch:,}, {batch / min(batch, race.keys):.1f} rows per key and batch,"
                + f" {spent.gave:,} results",
            )
        )


def make(folder: Path, rows: int, keys: int, batches: int) -> None:
    """Rows in order of time but for 20 s of disorder; and one more at the end, to close what is open."""
    each = rows // batches
    for batch in range(batches + 1):
        rest = 1 if batch == batches else each
        numbered = spark.session().session.range(batch * each, batch * each + rest, 1, 1)
        timed = numbered.select(
            sf.concat(sf.lit("card-"), sf.pmod(sf.xxhash64("id"), sf.lit(keys))).alias("key"),
            (
                sf.lit(START) + sf.col("id") * (SPAN // rows) - sf.pmod(sf.xxhash64(-sf.col("id")), sf.lit(20_000_000))
            ).alias("time"),
            (sf.pmod(sf.xxhash64(sf.col("id") + 2), sf.lit(100_000)) / 100).cast("decimal(18,2)").alias("amount"),
            sf.col("id").alias("off"),
        )
        # Rows are judged under the watermark of the batch before (rule R1), or a little less.
        before = sf.lit((START + (batch - 1) * each * (SPAN // rows)) // 1_000 - 21_000)
        made = timed.select("*", sf.timestamp_micros("time").alias("at"), before.alias("before"))
        made.repartition(PARTITIONS, "key").write.mode("append").option("parquet.enable.dictionary", "false").parquet(
            str(folder)
        )


def run(side: str, number: int, folder: Path) -> int:
    """One lap; how many results came."""
    here, race = spark.session(), RACES[number]
    schema = "key string, time long, amount decimal(18,2), off long, at timestamp, before long"
    files = here.session.readStream.schema(schema).option("maxFilesPerTrigger", PARTITIONS).parquet(str(folder))
    rows = files.withWatermark("at", "20 seconds")
    frame = kernel(here, rows, race) if side == KERNEL else native(rows, race)
    checkpoint = folder.with_name(f"checkpoint-{side}")
    writer = frame.writeStream.format("noop").outputMode("update" if side == KERNEL else "append")
    with spark.as_shipped(here) if side == TUNED else nullcontext():
        query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
        query.awaitTermination()
    shutil.rmtree(checkpoint)
    # Stores stay open for a minute after their query: with those of the laps before, RocksDB's memory would be full.
    here.session._jvm.org.apache.spark.sql.execution.streaming.state.StateStore.stop()
    return sum(p["sink"]["numOutputRows"] for p in query.recentProgress)


def native(rows: DataFrame, race: Race) -> DataFrame:
    assert race.native is not None
    return rows.groupBy(race.native(), "key").agg(sf.sum("amount").alias("spent"), sf.count(sf.lit(1)).alias("times"))


def kernel(here: Spark, rows: DataFrame, race: Race) -> DataFrame:
    """The kernel as the compiler sets it up (src/headrace/spark/stages.py), behind another source."""
    chain = rows.select(
        sf.lit(1).alias("step"), sf.lit(0).alias("port"), sf.col("key").cast("binary").alias("key"), "time", "before",
        sf.lit(0).alias("src"), sf.lit(0).alias("part"), "off", sf.lit(None).cast("binary").alias("id"),
        Column(here.jvm.Chain.pack(sf.struct("key", "amount")._jc)).alias("payload"),
    )  # fmt: skip
    told = ("key text", "window_start time", "window_end time", "kind text", "revision int")
    step = {
        "ordinal": 1,
        "name": "window",
        "hold_ms": 0,
        "spec": race.spec.as_json(),
        "inputs": [[_field("k0 text"), _field("a0 decimal(18, 2)")]],
        "output": [_field(name) for name in (*told, "spent decimal(28, 2)", "times int")],
        "keys": 1,
        "emits": [],
    }
    spec = {"app": "bench", "version": "1", "topics": ["rows"], "by_clock": False, "steps": [step]}
    return DataFrame(here.jvm.Stage.apply(chain._jdf, json.dumps(spec), {}), here.session)


def _field(text: str) -> dict[str, Any]:
    name, kind = text.split(" ", 1)
    return {"name": name, "type": kind, "nullable": True}


if __name__ == "__main__":
    main()
