"""Features online and offline: `get` of a card with 58 payments in 30 days, 14 features, Redis and back; `as_of` of
payments out of the lake, each with the features that it was told.

    python benchmarks/features.py [--keys N] [--gets N] [--laps N] [--rows N] [--feast PATH/python]

With `--feast`, an interpreter that has feast[redis], Feast's Python SDK reads as many features from the same Redis, and
the two take turns. It reads vectors that were computed before; ours are computed when they are asked for.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import write_deltalake
from rig.table import Line, Table

import headrace as hr
from headrace.base.clock import micros
from headrace.base.settings import load
from headrace.features.reader import FeatureReader
from headrace.model.output import Output
from headrace.model.target import FeatureRows
from headrace.stack import stack
from headrace.stores import arrow
from headrace.stores.redis_sets import RedisSets
from headrace.stores.store import Batch

ROWS = 58
NOW = datetime.now(UTC)


@hr.event(topic="payments", key="card_id", time="at", id="payment_id")
class Payment:
    payment_id: str
    card_id: str
    amount: hr.Money
    tenths: int
    miss: int
    lat: float
    lon: float
    country: str
    at: datetime


bank = hr.App("bank")
payments = bank.stream(Payment, disorder="30 s")
card = (
    bank.features("card", key="card_id", source=payments, ttl="30 d", once="payment_id")
    .over("1 h", "1 d", "7 d", "30 d", spent=hr.sum("amount"), times=hr.count())
    .over("1 d", misses=hr.sum("miss"))
    .over("30 d", squares=hr.sum("tenths * tenths"))
    .last("at", "lat", "lon", "country")
)
card.to(hr.redis("bench:{card_id}"))
payments.to(hr.lake("payments"))


def staged(folder: Path, output: Output, cards: range) -> Path:
    """The payments of cards as a flow's tasks leave them for the store."""
    chance = random.Random(cards.start)
    times = [NOW - timedelta(days=30) * chance.random() for _ in range(len(cards) * ROWS)]
    given: dict[str, list[Any]] = {
        "card_id": [f"c{n}" for n in cards for _ in range(ROWS)],
        "payment_id": [f"p{cards.start * ROWS + n}" for n in range(len(times))],
        "amount": [hr.money(chance.randrange(1, 200)) for _ in times],
        "miss": [0] * len(times),
        "lat": [47.37] * len(times),
        "lon": [8.54] * len(times),
        "country": ["CH"] * len(times),
        "at": times,
    }
    tenths = [int(amount * 10) ** 2 for amount in given["amount"]]
    columns = {f.name: pa.array(given.get(f.name, tenths), f.type) for f in arrow.fields(output.of.columns)}
    beside = {"_time": pa.array(list(map(micros, times))), "_id": pa.array(given["payment_id"])}
    file = folder / f"{cards.start}.parquet"
    pq.write_table(pa.table(columns | beside), file)
    return file


def fill(folder: Path, url: str, keys: int) -> None:
    output = bank.outputs[0]
    assert isinstance(output.target, FeatureRows)
    store = RedisSets(url, output.target, output.of.columns)
    store.open("bench/v1/card")
    for number, first in enumerate(range(0, keys, 500)):
        file = staged(folder, output, range(first, min(first + 500, keys)))
        store.commit(Batch(flow="bench/v1/card/1", number=number, files=(file,)))
    store.close()


def ours(reader: FeatureReader, keys: int, gets: int) -> list[float]:
    chance, took = random.Random(1), []
    for _ in range(gets):
        key = f"c{chance.randrange(keys)}"
        start = time.perf_counter()
        found = reader.get(card_id=key)
        took.append(time.perf_counter() - start)
        assert found["times_30d"] > 0
    return took


def offline(table: Table, lake: Path, rows: int) -> None:
    """Half a year of payments, ten a card and five days."""
    chance = random.Random(1)
    amounts = [chance.randrange(100, 20_000) for _ in range(rows)]
    made = {
        "payment_id": [f"p{n:08}" for n in range(rows)],
        "card_id": [f"c{chance.randrange(max(1, rows // 350))}" for _ in range(rows)],
        "amount": [Decimal(amount).scaleb(-2) for amount in amounts],
        "tenths": [amount // 10 for amount in amounts],
        "miss": [0] * rows,
        "lat": [47.37] * rows,
        "lon": [8.54] * rows,
        "country": ["CH"] * rows,
        "at": sorted(NOW - timedelta(days=180) * chance.random() for _ in range(rows)),
    }
    stored = pa.table({f.name: pa.array(made[f.name], f.type) for f in arrow.fields(payments.columns)})
    write_deltalake(str(lake / "payments"), stored)
    with FeatureReader(card.node, bank.outputs, redis=str, lake=lake) as reader:
        clock, cpu = time.perf_counter(), time.process_time()
        found = reader.as_of(stored.select(["payment_id", "card_id", "at"]), time="at", id="payment_id")
        clock, cpu = time.perf_counter() - clock, time.process_time() - cpu
    assert found.num_rows == rows
    table.add(
        Line(what=f"as_of, {rows:,} payments", figure=f"{rows / clock:,.0f}/s", beside=f"{rows / cpu:,.0f} per CPU s")
    )


@contextmanager
def feast(python: str, url: str, keys: int) -> Iterator[Callable[[int], list[float]]]:
    """Laps of Feast, in its own interpreter."""
    place = urlsplit(url)
    connection = f"{place.hostname}:{place.port},password={place.password},db=1"
    script = Path(__file__).with_name("rig") / "feast_reader.py"
    command = [python, str(script), connection, str(keys)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        said, asked = process.stdout, process.stdin
        while said.readline().strip() != "ready":
            assert process.poll() is None, "Feast ended"

        def lap(gets: int) -> list[float]:
            print(gets, file=asked, flush=True)
            found: list[float] = json.loads(said.readline())
            return found

        yield lap
        asked.close()


def told(table: Table, what: str, laps: list[list[float]], beside: float | None = None, target: float = 0) -> float:
    """The best lap's median and 99th of a hundred."""
    best = min(laps, key=median)
    middle, worst = median(best), sorted(best)[len(best) * 99 // 100]
    table.add(
        Line(
            what=what,
            figure=f"{middle * 1e3:.2f} ms",
            ratio="" if beside is None else f"{beside / middle:.1f} x",
            target=f"{target * 1e3:.0f} ms" if target else "",
            met=middle <= target if target else None,
            beside=f"p99 {worst * 1e3:.2f} ms",
        )
    )
    return middle


def online(table: Table, own: Callable[[int], list[float]], url: str, given: argparse.Namespace) -> None:
    own(100)
    if given.feast is None:
        told(table, "get, p50", [own(given.gets) for _ in range(given.laps)], target=1e-3)
        print("Feast beside it: --feast PATH/python, of an interpreter with feast[redis]")
        return
    with feast(given.feast, url, given.keys) as theirs:
        theirs(100)
        pairs = [(theirs(given.gets), own(given.gets)) for _ in range(given.laps)]
    other = told(table, "Feast, get_online_features, p50", [lap for lap, _ in pairs])
    told(table, "get, p50", [lap for _, lap in pairs], other, target=1e-3)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--keys", type=int, default=5_000)
    asked.add_argument("--gets", type=int, default=2_000, help="a lap")
    asked.add_argument("--laps", type=int, default=5)
    asked.add_argument("--rows", type=int, default=100_000, help="of as_of")
    asked.add_argument("--feast", help="an interpreter that has feast[redis]")
    given = asked.parse_args()
    with tempfile.TemporaryDirectory() as home:
        settings = load({"home": home}, root=Path(home), env={})
        url = stack.up(settings.home, settings.cache, parts=("redis",), foreground=True).redis
        try:
            fill(Path(home), url, given.keys)
            table = Table(f"Features: {given.keys:,} cards with {ROWS} payments each")
            with FeatureReader(card.node, bank.outputs, redis=lambda: url, lake=Path(home)) as reader:
                online(table, lambda gets: ours(reader, given.keys, gets), url, given)
            offline(table, Path(home) / "lake", given.rows)
        finally:
            stack.down(settings.home)


if __name__ == "__main__":
    main()
