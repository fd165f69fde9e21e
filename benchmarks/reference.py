"""How many events a second the reference engine takes: tumbling count, batches of rows.

    python benchmarks/reference.py [--events N]

One thread of Python that waits for nobody: so a second is one of CPU time, and a busy machine shows the same.
"""

from __future__ import annotations

import argparse
import random
import time
from datetime import datetime

from rig.table import Line, Table

import headrace as hr
from headrace.base.clock import from_micros
from headrace.plan.plan import build
from headrace.reference.batch import Arrival, Batch
from headrace.reference.engine import run
from headrace.steps.row import END

START = 1_762_128_000_000_000  # 2025-11-03, micros
LEAST = 50_000
CASES = ((100, 10_000, LEAST), (10_000, 10_000, 0), (100, 100, 0), (100, 1, 0))
"""Keys, rows a batch, and how many events a second are aimed at (0: none)."""


@hr.event(topic="clicks", key="page", time="at")
class Click:
    page: str
    at: datetime


def app() -> hr.App:
    site = hr.App("site")
    clicks = site.stream(Click, disorder="5 s")
    clicks.window(hr.tumbling("1 min"), lateness="0 s").agg(times=hr.count()).to(site.topic("per-minute"))
    return site


def schedule(events: int, keys: int, size: int) -> list[Batch]:
    """A thousand events a second of event time, a little out of order."""
    chance = random.Random(1)
    batches, rows, top = [], [], 0
    for offset in range(events):
        at = START + offset * 1_000 + chance.randrange(-2_000_000, 1)
        top = max(top, at)
        rows.append(Arrival(at, 0, 0, offset, (f"page-{chance.randrange(keys)}", from_micros(at))))
        if len(rows) == size:
            batches.append(Batch(rows, top // 1_000 - 5_000, top // 1_000))
            rows = []
    return [*batches, Batch(rows, END, top // 1_000)]


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--events", type=int, default=200_000)
    given = asked.parse_args()
    plan = build(app())
    table = Table(f"reference engine: tumbling count of {given.events:,} clicks, 1 min")
    for keys, size, least in CASES:
        batches = schedule(given.events, keys, size)
        began = time.process_time()
        results = run(plan, batches)
        rate = given.events / (time.process_time() - began)
        table.add(
            Line(
                what=f"{keys:,} keys, batches of {size:,}",
                figure=f"{rate:,.0f}/s",
                target=f"{least:,}/s" if least else "",
                met=rate >= least if least else None,
                beside=f"{max(size / keys, 1):.0f} rows per key and batch, {len(results):,} results",
            )
        )


if __name__ == "__main__":
    main()
