"""Features over history: the fifteen of the Fraud Detection Handbook for each of its payments, from Kafka to Kafka.

    python benchmarks/backfill.py [TRANSACTIONS.parquet] [--events N] [--laps N]

Twelve are told by state: how many payments and their mean amount, of the card over 1, 7 and 30 days; how many and the
share of frauds, at the terminal over the same windows, a week ago, since frauds are known that late. Three are of the
payment itself: its amount, whether it was on a weekend, whether at night. What came out is compared, row by row, with
what DuckDB says over the file. The file is not ours to ship: its path is given.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pyarrow as pa
from rig import payments, spark
from rig.table import Line, Table

import headrace as hr
from headrace.base.clock import micros, rfc3339
from headrace.base.ids import random_id
from headrace.log import topics
from headrace.log.broker import Broker
from headrace.log.read import read
from headrace.model.topic import Topic
from headrace.observe.snapshot import FlowSnapshot
from headrace.ops.run import make_topics
from headrace.plan.plan import build
from headrace.spark.checkpoint import Checkpoint
from headrace.spark.query import Job, Running

TOPIC = "handbook"
DAYS = ("1 d", "7 d", "30 d")
SECONDS = 60
"""Aimed at, for all 1.75 million payments on two cores."""


@hr.event(topic=TOPIC, key="card_id", time="at", id="payment_id")
class Payment:
    payment_id: int
    card_id: str
    terminal_id: str
    amount: hr.Money
    fraud: int
    at: datetime


def declared(out: str, version: str) -> hr.App:
    app = hr.App("backfill", version=version)
    paid = app.stream(Payment, disorder="0 s")
    card = app.features("card", key="card_id", source=paid, ttl="60 d").over(*DAYS, n=hr.count(), mean=hr.avg("amount"))
    terminal = app.features("terminal", key="terminal_id", source=card.vectors, ttl="60 d")
    terminal = terminal.over(*DAYS, delay="7 d", uses=hr.count(), risk=hr.avg("fraud"))
    told = [name for name, _ in columns()]
    terminal.vectors.select(
        f"payment_id, amount, extract(isodow from at) >= 6 as weekend, extract(hour from at) <= 6 as night, "
        f"{', '.join(told)}"
    ).to(app.topic(out, partitions=payments.PARTITIONS), key="payment_id")
    return app


def columns() -> list[tuple[str, str]]:
    """The twelve, each with what DuckDB computes for it."""
    found = []
    for size in DAYS:
        days, name = size.split()[0], size.replace(" ", "")
        back = f"range between interval {days} day - interval 1 microsecond preceding and current row"
        card = f"over (partition by customer_id order by tx_datetime {back})"
        gone = f"range between interval {int(days) + 7} day - interval 1 microsecond preceding"
        week = f"over (partition by terminal_id order by tx_datetime {gone} and interval 7 day preceding)"
        found += [(f"n_{name}", f"count(*) {card}"), (f"mean_{name}", f"avg(tx_amount) {card}")]
        found += [(f"uses_{name}", f"count(*) {week}"), (f"risk_{name}", f"avg(tx_fraud) {week}")]
    return found


def records(file: Path, events: int) -> Iterator[tuple[str, str, int]]:
    """In the order of the file, which is that of time."""
    asked = f"select * from '{file}' order by tx_datetime, transaction_id limit {events}"
    found = duckdb.sql(asked)
    while rows := found.fetchmany(50_000):
        for number, time, card, terminal, amount, fraud, _ in rows:
            at = time.replace(tzinfo=UTC)
            value = (
                f'{{"payment_id":{number},"card_id":"c{card}","terminal_id":"t{terminal}","amount":"{amount:.2f}",'
                f'"fraud":{fraud},"at":"{rfc3339(at)}"}}'
            )
            yield f"c{card}", value, micros(at) // 1000


def run(broker: Broker, folder: Path) -> dict[str, Any]:
    version = f"v{random_id()[:8]}"
    app = declared(f"{version}-out", version)
    plan = build(app)
    (flow,) = plan.flows
    make_topics(broker, plan, app.topics, lambda _: None)
    told: list[FlowSnapshot] = []
    job = Job(plan=plan, flow=flow, mode="history", broker=broker, checkpoint=Checkpoint.of(folder, plan, flow))
    running = Running(spark.session(), job, told.append)
    running.wait()
    if running.error:
        raise running.error
    batches = {s.batch: s.rows for s in told if s.batch >= 0 and s.rows}
    return {"out": f"{version}-out", "batches": len(batches)}


def differing(broker: Broker, out: str, file: Path, events: int) -> tuple[dict[str, int], int]:
    """By feature, in how many rows it is not what DuckDB says, if in any; and how many rows there are."""
    names = [name for name, _ in columns()]
    rows = [msgspec.json.decode(message.value()) for message in read(broker, out)]
    wanted = ", ".join(f"{made} as {name}" for name, made in columns())
    first = f"select * from '{file}' order by tx_datetime, transaction_id limit {events}"
    with duckdb.connect() as db:
        db.register("told", pa.Table.from_pylist([_plain(row, names) for row in rows]))
        counts = [f"count(*) filter (abs(coalesce(t.{n}, -1) - coalesce(f.{n}, -1)) > 1e-4)" for n in names]
        asked = f"select {', '.join(counts)} from told t join (select transaction_id, {wanted} from ({first})) f"
        found = db.execute(f"{asked} on t.payment_id = f.transaction_id").fetchone()
    assert found is not None
    return {name: n for name, n in zip(names, found, strict=True) if n}, len(rows)


def _plain(row: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """Decimals come as text."""
    return {"payment_id": row["payment_id"]} | {n: None if row[n] is None else float(row[n]) for n in names}


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("file", type=Path, nargs="?")
    asked.add_argument("--events", type=int, default=10_000_000)
    asked.add_argument("--laps", type=int, default=2)
    given = asked.parse_args()
    if given.file is None:
        print("Without the path of the handbook's transactions there is nothing to measure.")
        return
    with payments.log() as (settings, broker), spark.ours(settings) as ours:
        topics.ensure(broker, Topic(name=TOPIC, partitions=payments.PARTITIONS))
        payments.send(broker, TOPIC, records(given.file, given.events))
        events = payments.counted(broker, TOPIC)
        table = Table(f"Kafka to Kafka: 15 features of each of {events:,} payments, {payments.PARTITIONS} partitions")
        for _ in range(given.laps):
            spent = ours.run(run, broker, settings.home)
            differs, rows = differing(broker, spent.gave["out"], given.file, events)
            table.add(
                Line(
                    what="features over history",
                    figure=f"{events / spent.clock:,.0f}/s",
                    target=f"{1_754_155 / SECONDS:,.0f}/s",
                    met=events / spent.clock >= 1_754_155 / SECONDS,
                    beside=f"{events / spent.cpu:,.0f} per CPU s, {spent.clock:.0f} s, {spent.gave['batches']} "
                    f"batches, {rows:,} written, other than DuckDB: {differs or 'none'}",
                )
            )


if __name__ == "__main__":
    main()
