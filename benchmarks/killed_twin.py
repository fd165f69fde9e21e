"""What a killed twin costs those who wait: kill -9 of its JVM under load, again and again, while the other answers.

    python benchmarks/killed_twin.py --url URL --key FILE [--rate N] [--kills N] [--every SECONDS] [--all]

The bank runs (`make run`) on this machine. Twins are killed in turns. One is back when there are as many answers as
before, and none any more to what it has missed. Asked for: no degraded answer, and back within 20 s. `--all`: both
twins and who stands by at once, so that nobody is left to decide; answers are degraded then, until a twin is back.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from time import perf_counter
from urllib.request import urlopen

import psutil
from rig.load import Load, Seen
from rig.recorded import recorded
from rig.table import Line, Table

from headrace.base.settings import load
from headrace.spark.checkpoint import Checkpoint

ALL = "all drivers"
STEADY = 1.3
"""So many times as many answers as usual, and a twin is still at those that it has missed."""


@dataclass(frozen=True, slots=True)
class Kill:
    """One of them, in seconds of the load's clock: when somebody answered what it has missed, and when it was back.
    None: not within the time it had."""

    twin: str
    at: float
    first: float | None
    back: float | None


def jvm_of(twin: str) -> psutil.Process:
    """Of the process that has the twin's checkpoint now."""
    for folder in load().home.glob("state/decide/*/*"):
        driver = Checkpoint(folder=folder).driver()
        if driver is not None and (folder.name.partition("~")[2] or "1") == twin:
            return next(child for child in psutil.Process(driver).children() if child.name() == "java")
    raise SystemExit(f"no twin {twin} runs here: `make run` first")


def further_answers(url: str) -> int:
    with urlopen(f"{url}/metrics", timeout=5) as answer:
        lines = answer.read().decode().splitlines()
    return sum(int(float(line.split()[-1])) for line in lines if line.startswith("headrace_twin_answers_total"))


async def paces(url: str, lasts: float) -> AsyncIterator[tuple[float, float]]:
    """Every second the instant at which it began, and how many further answers there were in it."""
    until, began, had = perf_counter() + lasts, perf_counter(), await asyncio.to_thread(further_answers, url)
    while perf_counter() < until:
        await asyncio.sleep(1)
        now, has = perf_counter(), await asyncio.to_thread(further_answers, url)
        yield began, (has - had) / (now - began)
        began, had = now, has


def jvms() -> list[psutil.Process]:
    """Of all drivers that decide, also of those that stand by."""
    drivers = [one for one in psutil.process_iter(["cmdline"]) if {"run", "decide"} <= set(one.info["cmdline"] or ())]
    return [child for one in drivers for child in one.children() if child.name() == "java"]


async def killed(twin: str, url: str, usual: float, lasts: float) -> Kill:
    """Kills it, and looks on until the time is over. It is back when three seconds in a row are as usual."""
    for one in jvms() if twin == ALL else [jvm_of(twin[-1])]:
        one.kill()
    at, first, back = perf_counter(), None, None
    calm: list[float] = []
    async for began, pace in paces(url, lasts):
        print(f"  {began - at:5.1f} s: {pace / usual:5.2f} x as many further answers as usual", file=sys.stderr)
        first = first or (began if pace > 0 else None)
        calm = [*calm, began] if 0.7 < pace / usual < STEADY and began - at > 1 else []
        back = back or (calm[0] if len(calm) == 3 else None)
    return Kill(twin, at, first, back)


async def measured(url: str, key: str, rate: int, twins: Sequence[str], every: float) -> tuple[Seen, list[Kill]]:
    load, done = Load(url, key), []
    lasts = timedelta(seconds=every * (len(twins) + 1))
    running = asyncio.create_task(load.run(rate, lasts, every=timedelta(seconds=1)))
    before = [pace async for _, pace in paces(url, every)]
    usual = median(before)
    for twin in twins:
        print(f"{datetime.now(UTC):%H:%M:%S} kill -9 of {twin}", file=sys.stderr)
        done.append(await killed(twin, url, usual, every))
    return await running, done


def since(kill: Kill, then: float | None, what: str) -> Line:
    took = None if then is None else then - kill.at
    figure = "not" if took is None else f"{took:.0f} s"
    return Line(what=what, figure=figure, target="<= 20 s", met=took is not None and took <= 20)


def report(seen: Seen, kills: list[Kill], rate: int, every: float) -> Table:
    table = Table(f"kill -9 of a twin every {every:g} s, {rate} decisions a second over HTTP", wide=30)
    calm = seen.between(0, kills[0].at)
    table.add(Line(what="before", figure=f"{calm.degraded:,} degraded", beside=f"  {calm}"))
    for kill in kills:
        after = seen.between(kill.at, kill.at + every)
        line = Line(what=f"after {kill.twin}", figure=f"{after.degraded:,} degraded", beside=f"  {after}")
        if kill.twin == ALL:  # nobody could have answered: how long was that so?
            table.add(line)
            table.add(since(kill, kill.first, "  decides again after"))
            table.add(replace(since(kill, kill.back, "  both twins are back after"), target="", met=None))
            continue
        table.add(replace(line, target="0", met=after.degraded == 0))
        table.add(since(kill, kill.back, "  back after"))
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:8600", help="of the bank's service")
    parser.add_argument("--key", type=Path, default=Path(".headrace/serve/api-key"), help="file of its API key")
    parser.add_argument("--rate", type=int, default=200, help="requests a second")
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--every", type=float, default=90, help="seconds from one to the next")
    parser.add_argument("--all", action="store_true", help="kill all drivers that decide, once")
    given = parser.parse_args()
    key, began = given.key.read_text().strip(), datetime.now(UTC)
    twins = [ALL] if given.all else list(islice(cycle(("twin 1", "twin 2")), given.kills))
    seen, kills = asyncio.run(measured(given.url, key, given.rate, twins, given.every))
    report(seen, kills, given.rate, given.every).add(recorded(seen.ids, began).line())


if __name__ == "__main__":
    main()
