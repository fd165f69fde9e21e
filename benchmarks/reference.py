"""How many events a second the reference engine takes: tumbling count, batches of rows."""

from __future__ import annotations

import random
import time
from datetime import datetime

import headrace as hr
from headrace.base.clock import from_micros
from headrace.plan.plan import build
from headrace.reference.batch import END, Arrival, Batch
from headrace.reference.engine import run

EVENTS = 300_000
START = 1_762_128_000_000_000  # 2025-11-03, micros


@hr.event(topic="clicks", key="page", time="at")
class Click:
    page: str
    at: datetime


def app() -> hr.App:
    site = hr.App("site")
    clicks = site.stream(Click, disorder="5 s")
    clicks.window(hr.tumbling("1 min"), lateness="0 s").agg(times=hr.count()).to(site.topic("per-minute"))
    return site


def schedule(keys: int, size: int) -> list[Batch]:
    """A thousand events a second of event time, a little out of order."""
    chance = random.Random(1)
    batches, rows, top = [], [], 0
    for offset in range(EVENTS):
        at = START + offset * 1_000 + chance.randrange(-2_000_000, 1)
        top = max(top, at)
        rows.append(Arrival(at, 0, 0, offset, (f"page-{chance.randrange(keys)}", from_micros(at))))
        if len(rows) == size:
            batches.append(Batch(rows, top // 1_000 - 5_000, top // 1_000))
            rows = []
    return [*batches, Batch(rows, END, top // 1_000)]


def main() -> None:
    plan = build(app())
    print("reference engine, tumbling count, 1 min\n")
    print(f"{'keys':>8} {'rows/batch':>11} {'events/s':>10} {'results':>9}")
    for keys, size in ((100, 10_000), (10_000, 10_000), (100, 100), (100, 1)):
        batches = schedule(keys, size)
        began = time.perf_counter()
        results = run(plan, batches)
        took = time.perf_counter() - began
        print(f"{keys:>8,} {size:>11,} {EVENTS / took:>10,.0f} {len(results):>9,}")


if __name__ == "__main__":
    main()
