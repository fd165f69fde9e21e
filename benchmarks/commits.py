"""Whole flows that commit exactly once: Kafka, windows, then a topic alone, or a topic, PostgreSQL and the lake.

    python benchmarks/commits.py [--events N] [--cards N] [--laps N]

Payments are read from the beginning, summed per card in windows of ten minutes, and every result goes to all outputs in
one commit a batch. The flows take turns in one JVM; the best lap counts. PostgreSQL's own CPU is not in the figure.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from rig import payments, spark
from rig.history import read_through
from rig.table import Line, Table

import headrace as hr
from headrace.base.ids import random_id
from headrace.base.settings import Settings, load
from headrace.log.broker import Broker
from headrace.stack import stack

LEAST = 20_000
"""Events a second that are aimed at, with stores."""


def run(broker: Broker, settings: Settings, topic: str, stored: bool) -> str:
    """The flow over all of the topic; gives the topic of its results."""
    name = f"v{random_id()[:8]}"
    app = hr.App("bench", version=name)
    windows = app.stream(payments.payment(topic), disorder=payments.DISORDER).window(
        hr.tumbling("10 min"), lateness="0 s"
    )
    spend = windows.agg(spent=hr.sum("amount"), times=hr.count())
    spend.to(app.topic(f"{name}-out", partitions=payments.PARTITIONS))
    if stored:
        spend.to(hr.postgres(name, key="card_id, window_start"))
        spend.to(hr.lake(name, partition="day(window_start)"))
    read_through(app, broker, settings)
    return f"{name}-out"


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--events", type=int, default=2_000_000)
    asked.add_argument("--cards", type=int, default=10_000)
    asked.add_argument("--laps", type=int, default=3)
    given = asked.parse_args()
    best: dict[bool, spark.Spent] = {}
    with payments.log() as (settings, broker), spark.ours(settings) as ours:
        url = stack.up(settings.home, settings.cache, parts=("kafka", "postgres"), foreground=True).postgres
        stored = load({"home": str(settings.home), "postgres.url": url}, root=Path(settings.home), env={})
        payments.fill(broker, "payments", given.events, given.cards)
        for _ in range(given.laps):
            for with_stores in (False, True):
                spent = ours.run(run, broker, stored, "payments", with_stores)
                if with_stores not in best or spent.clock < best[with_stores].clock:
                    best[with_stores] = spent
        written = payments.counted(broker, best[True].gave)
    table = Table(f"commits: {given.events:,} payments of {given.cards:,} cards, {written:,} results")
    own = best[True]
    for with_stores, spent in best.items():
        table.add(
            Line(
                what="a topic, PostgreSQL and the lake" if with_stores else "a topic alone",
                figure=f"{given.events / spent.clock:,.0f}/s",
                ratio="" if with_stores else f"{own.clock / spent.clock:.2f} x",
                target=f"{LEAST:,}/s" if with_stores else "",
                met=given.events / spent.clock >= LEAST if with_stores else None,
                beside=f"{given.events / spent.cpu:,.0f} per CPU s",
            )
        )


if __name__ == "__main__":
    main()
