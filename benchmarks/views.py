"""Views: orders joined to users, both changing: one change that moves many rows, and many changes at random.

The plan is a user's, compiled for micro-batch. Versions come from Parquet files, one a batch, so that neither a broker
nor decoding is measured; the records of the view are made, and go nowhere.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

import psutil
import pyspark.sql.functions as sf
from pyspark.sql import DataFrame
from rig.table import Line, Table

import headrace as hr
from headrace.base.settings import load
from headrace.plan.plan import build
from headrace.spark.chain import Chain
from headrace.spark.compile import Compiler
from headrace.spark.session import Spark, start

DAY = 86_400_000_000
NONE = -(2**63)
ORDER = "struct<order_id: string, user_id: string, amount: decimal(18,2), note: string, at: timestamp>"
USER = "struct<user_id: string, name: string, city: string, since: timestamp>"
VERSIONS = f"topic int, key binary, time bigint, offset bigint, e0 {ORDER}, e1 {USER}"


@hr.event(topic="orders", key="order_id", time="at")
class Order:
    order_id: str
    user_id: str
    amount: hr.Money
    note: str
    at: datetime


@hr.event(topic="users", key="user_id", time="since")
class User:
    user_id: str
    name: str
    city: str
    since: datetime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--orders", type=int, default=100_000)
    parser.add_argument("--users", type=int, default=10_000)
    parser.add_argument("--updates", type=int, default=50_000, help="in a batch")
    parser.add_argument(
        "--laps", type=int, default=12, help="batches; the first warm the JIT compiler, the best counts"
    )
    asked = parser.parse_args()
    with TemporaryDirectory(prefix="headrace-views-") as home:
        told = {"home": f"{home}/home", "spark.master": "local[2]", "spark.driver_memory": "3g"}
        with start(load(told), profile="live", app_name="views") as spark:
            table = Table("A view of orders and users that both change: tables, links, join, settle")
            _one_user(spark, Path(home) / "one", 10_000, asked.laps, table)
            _random(spark, Path(home) / "random", asked, table)


def _one_user(spark: Spark, folder: Path, orders: int, laps: int, table: Table) -> None:
    """One user changes, again and again; each time all orders of the view change."""
    with _running(spark, folder) as lap:
        lap(_orders(spark.session.range(orders), sf.lit(0), 0), _users(spark.session.range(1), 0))
        done = [lap(_users(spark.session.range(1), number)) for number in range(1, laps + 1)]
    assert all(one.changes == orders for one in done), done
    clock, cpu = min(one.clock for one in done), min(one.cpu for one in done)
    what = f"a user changes, {orders:,} orders follow"
    table.add(Line(what=what, figure=f"{clock:.2f} s", target="< 1 s", met=clock < 1, beside=f"{cpu:.2f} s of CPU"))


def _random(spark: Spark, folder: Path, asked: argparse.Namespace, table: Table) -> None:
    """Updates hit every row of both tables alike; an order moves to another user each time."""
    orders, users, updates = asked.orders, asked.users, asked.updates
    with _running(spark, folder) as lap:
        lap(_orders(spark.session.range(orders), sf.col("id") % users, 0), _users(spark.session.range(users), 0))
        done = [lap(*_updated(spark, orders, users, updates, number)) for number in range(1, asked.laps + 1)]
    best = min(done, key=lambda one: one.clock)
    rate, per_cpu = updates / best.clock, updates / min(one.cpu for one in done)
    what = f"updates of {orders:,} orders, {users:,} users"
    beside = f"{per_cpu:,.0f} per CPU s; {updates:,} a batch, which change {best.changes:,} rows of the view"
    table.add(Line(what=what, figure=f"{rate:,.0f}/s", target="20,000/s", met=rate >= 20_000, beside=beside))


def _updated(spark: Spark, orders: int, users: int, updates: int, batch: int) -> tuple[DataFrame, DataFrame]:
    hit = spark.session.range(updates).select(
        sf.pmod(sf.xxhash64("id", sf.lit(batch)), sf.lit(orders + users)).alias("id")
    )
    moved = _orders(hit.where(sf.col("id") < orders), sf.pmod(sf.xxhash64("id", sf.lit(-batch)), sf.lit(users)), batch)
    return moved, _users(hit.where(sf.col("id") >= orders).select((sf.col("id") - orders).alias("id")), batch)


@dataclass(frozen=True, slots=True)
class Lap:
    """A batch: from its file's arrival until all is done. `changes`: output keys touched."""

    clock: float
    cpu: float
    changes: int


@contextmanager
def _running(spark: Spark, folder: Path) -> Iterator[Callable[..., Lap]]:
    """Gives the function that hands the view a batch of versions, and waits for it."""
    (folder / "versions").mkdir(parents=True)
    query = (
        _view(spark, folder).writeStream.format("noop").outputMode("update")
        .option("checkpointLocation", str(folder / "checkpoint")).start()
    )  # fmt: skip
    jvm = next(p for p in psutil.Process().children(recursive=True) if p.name() == "java")

    def lap(*frames: DataFrame) -> Lap:
        both = frames[0] if len(frames) == 1 else frames[0].unionByName(frames[1])
        both.coalesce(1).write.mode("overwrite").parquet(str(folder / "next"))
        (made,) = (folder / "next").glob("*.parquet")
        began, spent = monotonic(), _cpu(jvm)
        made.rename(folder / "versions" / made.name)
        query.processAllAvailable()
        return Lap(monotonic() - began, _cpu(jvm) - spent, query.lastProgress["stateOperators"][0]["numRowsUpdated"])

    try:
        yield lap
    finally:
        query.stop()


def _cpu(process: psutil.Process) -> float:
    used = process.cpu_times()
    return float(used.user + used.system)


def _orders(ids: DataFrame, user: Any, batch: int) -> DataFrame:
    row = sf.struct(
        _named("order-", sf.col("id")).alias("order_id"),
        _named("user-", user).alias("user_id"),
        (sf.pmod(sf.xxhash64("id", sf.lit(batch)), sf.lit(100_000)) / 100).cast("decimal(18,2)").alias("amount"),
        sf.lit("delivered to the door").alias("note"),
        sf.timestamp_micros(_time(batch)).alias("at"),
    )
    return _version(ids, 0, _named("order-", sf.col("id")), batch, row, sf.lit(None).cast(USER))


def _users(ids: DataFrame, batch: int) -> DataFrame:
    key = _named("user-", sf.col("id"))
    row = sf.struct(
        key.alias("user_id"),
        _named(f"Ann the {batch}. of ", sf.col("id")).alias("name"),
        sf.lit("Bonn").alias("city"),
        sf.timestamp_micros(_time(batch)).alias("since"),
    )
    return _version(ids, 1, key, batch, sf.lit(None).cast(ORDER), row)


def _version(ids: DataFrame, topic: int, key: Any, batch: int, order: Any, user: Any) -> DataFrame:
    """A record of the log as its source gives it."""
    offset = sf.lit(batch).cast("bigint")
    columns = {"topic": sf.lit(topic), "key": key.cast("binary"), "time": _time(batch), "offset": offset, "e0": order,
               "e1": user}  # fmt: skip
    return ids.select(*(column.alias(name) for name, column in columns.items()))


def _named(prefix: str, number: Any) -> Any:
    return sf.concat(sf.lit(prefix), number.cast("string"))


def _time(batch: int) -> Any:
    return sf.lit(DAY + batch * 1_000_000)


def _view(spark: Spark, folder: Path) -> DataFrame:
    """The plan of a user's view, compiled as ever, but for where its records come from and go to."""
    app = hr.App("bench")
    orders, users = app.table(Order), app.table(User)
    orders.join(users, on="user_id", how="left", take="orders.*, users.name, users.city").to(
        app.topic("view", compact=True)
    )
    plan = build(app)
    (flow,) = plan.flows
    read = spark.session.readStream.schema(VERSIONS).option("maxFilesPerTrigger", 1).parquet(str(folder / "versions"))
    records = read.withColumn("at", sf.timestamp_micros("time")).withWatermark("at", "1 hour").select(
        "*", sf.lit(NONE).alias("before"), sf.lit(0).alias("partition"), sf.lit(None).cast("string").alias("dead"),
        sf.lit(None).cast("binary").alias("value"),
        sf.lit(None).cast("array<struct<key: string, value: binary>>").alias("headers"),
    )  # fmt: skip
    compiled: DataFrame = Compiler(plan, flow, Chain(spark), "").records(records)
    return compiled


if __name__ == "__main__":
    main()
