"""Decisions over HTTP: an open loop at a steady rate; latencies count from the instant a request was due.

    python benchmarks/serving.py [--rate N] [--seconds N]                     the service alone: who decides is a loop
    python benchmarks/serving.py --url URL --key FILE [--rate N] [--seconds N]    a service that runs, with its flow

`--key` is the file of the API key.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import msgspec
import psutil
from rig import payments
from rig.load import Load, Seen, quantile
from rig.recorded import recorded
from rig.table import Line, Table

from headrace.log.arrivals import Arrivals
from headrace.log.broker import Broker
from headrace.log.prompt import PromptProducer

ROOT = Path(__file__).parents[1]
RAW = "decisions.raw"
WARM = timedelta(seconds=5)
APP = f"""
import headrace as hr
from bank.events import Payment

app = hr.App("alone")
app.service("decide", ask=Payment, answer=app.topic({RAW!r}), default={{"decision": "review"}})
"""


def decide(broker: Broker, ready: Event, stop: Event) -> None:
    """Who decides when the service is measured alone: allows whatever comes, at once."""
    producer = PromptProducer(broker)

    def take(messages: list[Any]) -> None:
        for message in messages:
            id = msgspec.json.decode(message.value())["payment_id"]
            row = {"payment_id": id, "decision": "allow", "reasons": [], "seen_card": f"payments/{message.offset()}"}
            producer.send(RAW, (id.encode(), msgspec.json.encode(row), [], 0))

    reader = Arrivals(broker, ["payments"], take, since=datetime.now(UTC))
    ready.set()
    stop.wait()
    reader.close()
    producer.close()


@contextmanager
def alone() -> Iterator[tuple[str, str, psutil.Process]]:
    """A service in a process of its own, and who decides in another; gives its URL, its key and the process."""
    with payments.log() as (settings, broker):
        (settings.home / "alone.py").write_text(APP)
        environment = os.environ | {"HEADRACE__HOME": str(settings.home), "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT}/src"}
        command = [sys.executable, "-m", "headrace", "serve", "alone", "--port", "0"]
        service = subprocess.Popen(command, cwd=settings.home, env=environment, stderr=subprocess.PIPE, text=True)
        context = get_context("spawn")
        ready, stop = context.Event(), context.Event()
        decider = context.Process(target=decide, args=(broker, ready, stop))
        try:
            assert service.stderr is not None
            page, *_ = (service.stderr.readline() for _ in range(3))
            decider.start()
            ready.wait()
            url, _, key = page.split()[1].partition("/#key=")
            yield url, key, psutil.Process(service.pid)
        finally:
            stop.set()
            decider.join()
            service.terminate()
            service.wait()


def report(seen: Seen, title: str, *, targets: bool) -> Table:
    table = Table(title)
    for name, share, target in (("p50", 0.5, 15), ("p99", 0.99, 100), ("p99.9", 0.999, None)):
        found = quantile(seen.took, share)
        met = found <= target if targets and target else None
        table.add(Line(what=name, figure=f"{found:.1f} ms", target=f"<= {target} ms" if target else "", met=met))
    degraded = 100 * seen.degraded / len(seen.answers)
    table.add(Line(what="degraded", figure=f"{degraded:.2f} %", target="< 1 %", met=degraded < 1 if targets else None))
    for stage in seen.answers[-1].stages:
        values = seen.stage(stage)
        shown = f"{quantile(values, 0.5):.2f} / {quantile(values, 0.99):.1f} ms"
        table.add(Line(what=f"  {stage}, p50 / p99", figure=shown))
    told = ", ".join(f"{count:,} {kind}" for kind, count in seen.kinds.items())
    table.add(Line(what="what came back", figure="", beside=f"{told}; {seen.late:,} requests left late"))
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", help="of a service that runs; default: one is started, with a loop that decides")
    parser.add_argument("--key", type=Path, help="file of its API key")
    parser.add_argument("--rate", type=int, default=200, help="requests a second")
    parser.add_argument("--seconds", type=int, default=20)
    given = parser.parse_args()

    async def measured(url: str, key: str) -> Seen:
        load = Load(url, key)
        await load.run(given.rate, WARM)
        return await load.run(given.rate, timedelta(seconds=given.seconds))

    title = f"{given.rate} decisions a second over HTTP for {given.seconds} s"
    if given.url:
        began = datetime.now(UTC)
        seen = asyncio.run(measured(given.url, given.key.read_text().strip()))
        report(seen, title, targets=True).add(recorded(seen.ids, began).line())
    else:
        with alone() as (url, key, service):
            before = sum(service.cpu_times()[:2])
            seen = asyncio.run(measured(url, key))
            cost = (sum(service.cpu_times()[:2]) - before) / (given.rate * (WARM.total_seconds() + given.seconds))
            report(seen, f"{title}, the service alone", targets=False)
            print(f"the service used {cost * 1000:.2f} ms of CPU for each")


if __name__ == "__main__":
    main()
