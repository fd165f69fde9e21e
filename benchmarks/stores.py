"""What stores take: rows of staged batches, committed exactly once by one driver.

    python benchmarks/stores.py [--rows N] [--batch N] [--laps N]

Rows are sums of cards in windows, six columns; half of the keys come again in the next batch, so that stores with keys
insert as much as they replace. Reading the staged files counts. Small batches have ten rows.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from rig.table import Line, Table

from headrace.base.ids import random_id
from headrace.base.settings import load
from headrace.expr.types import INT, MONEY, TEXT, TIME, Column
from headrace.model.target import Target, files, lake, postgres, redis
from headrace.stack import stack
from headrace.stores.files import FilesStore
from headrace.stores.lake import LakeStore
from headrace.stores.postgres import PostgresStore
from headrace.stores.redis import RedisStore
from headrace.stores.store import Batch, Store

COLUMNS = (
    Column("card_id", TEXT),
    Column("window_start", TIME),
    Column("window_end", TIME),
    Column("spent", MONEY),
    Column("times", INT),
    Column("country", TEXT, nullable=True),
)
START = datetime(2026, 11, 3, tzinfo=UTC)
SMALL = 10


def staged(folder: Path, target: Target, number: int, rows: int) -> Batch:
    """As a task leaves it. A batch shares half of its keys with the one before."""
    first = number * rows // 2
    starts = [START + timedelta(minutes=n % 60) for n in range(rows)]
    arrays: dict[str, pa.Array] = {
        "card_id": pa.array([f"card {first + n:08}" for n in range(rows)]),
        "window_start": pa.array([START] * rows, pa.timestamp("us", "UTC")),
        "window_end": pa.array(starts, pa.timestamp("us", "UTC")),
        "spent": pa.array([Decimal(n % 10_000) / 100 for n in range(rows)], pa.decimal128(18, 2)),
        "times": pa.array(range(rows)),
        "country": pa.array(["de" if n % 2 else None for n in range(rows)]),
    }
    extra = {"_gone": [False] * rows, "_time": list(range(rows)), "_id": [f"{number}-{n}" for n in range(rows)]}
    file = folder / f"{random_id()}.parquet"
    pq.write_table(pa.table(arrays | {name: pa.array(extra[name]) for name in target.extra}), file)
    return Batch(flow="bench/v1/spend/1", number=number, files=(file,))


@contextmanager
def opened(store: Store) -> Iterator[Store]:
    store.open("bench/v1/spend")
    try:
        yield store
    finally:
        store.drop()


def measure(
    table: Table, what: str, store: Store, target: Target, asked: argparse.Namespace, least: int = 0, most: int = 0
) -> None:
    """Batches of rows, the best lap of a whole round, with at least so many rows a second; then small batches, their
    median, with at most so many milliseconds."""
    with tempfile.TemporaryDirectory() as folder, opened(store):
        count = asked.rows // asked.batch
        best = 1e9, 1e9
        for lap in range(asked.laps):
            batches = [staged(Path(folder), target, lap * count + n, asked.batch) for n in range(count)]
            best = min(best, _spent(store, batches))
        clock, cpu = best
        total = count * asked.batch
        table.add(
            Line(
                what=f"{what}, batches of {asked.batch:,}",
                figure=f"{total / clock:,.0f}/s",
                target=f"{least:,}/s" if least else "",
                met=total / clock >= least if least else None,
                beside=f"{total / cpu:,.0f} per CPU s of the driver",
            )
        )
        small = [staged(Path(folder), target, 10_000 + n, SMALL) for n in range(50)]
        times = sorted(_spent(store, [batch])[0] for batch in small)
        median, last = times[len(times) // 2] * 1000, times[-2] * 1000
        table.add(
            Line(
                what=f"{what}, batches of {SMALL}",
                figure=f"{median:.1f} ms",
                target=f"{most} ms" if most else "",
                met=median <= most if most else None,
                beside=f"p98 {last:.1f} ms",
            )
        )


def _spent(store: Store, batches: list[Batch]) -> tuple[float, float]:
    """Seconds on the clock, and of CPU in this process."""
    used, began = psutil.Process().cpu_times(), time.perf_counter()
    for batch in batches:
        store.commit(batch)
    clock, now = time.perf_counter() - began, psutil.Process().cpu_times()
    return clock, now.user + now.system - used.user - used.system


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--rows", type=int, default=200_000)
    asked.add_argument("--batch", type=int, default=20_000)
    asked.add_argument("--laps", type=int, default=3)
    given = asked.parse_args()
    table = Table(f"stores: {given.rows:,} rows a lap, exactly once")
    with tempfile.TemporaryDirectory() as home:
        settings = load({"home": home}, root=Path(home), env={})
        servers = stack.up(settings.home, settings.cache, parts=("postgres", "redis"), foreground=True)
        try:
            by_key = postgres("spend", key="card_id, window_start")
            store: Store = PostgresStore(servers.postgres, by_key, COLUMNS)
            measure(table, "PostgreSQL, upserts", store, by_key, given, 20_000)
            appended = postgres("spend_log")
            store = PostgresStore(servers.postgres, appended, COLUMNS)
            measure(table, "PostgreSQL, appended", store, appended, given, 20_000)
            keys = redis("spend:{card_id}:{window_start}")
            measure(table, "Redis, writes", RedisStore(servers.redis, keys, COLUMNS), keys, given, 60_000)
            kept = lake("spend_log")
            measure(table, "lake, appended", LakeStore(settings.lake, kept, COLUMNS), kept, given, 250_000, 120)
            parted = lake("spend_by_country", partition="country")
            measure(table, "lake, split in two", LakeStore(settings.lake, parted, COLUMNS), parted, given, 250_000, 120)
            merged = lake("spend", key="card_id, window_start")
            measure(table, "lake, upserts", LakeStore(settings.lake, merged, COLUMNS), merged, given)
            plain = files("spend")
            measure(table, "files, appended", FilesStore(settings.files, plain, COLUMNS), plain, given)
        finally:
            stack.down(settings.home)


if __name__ == "__main__":
    main()
