"""Decisions over HTTP: an open loop at a steady rate; latencies count from the instant a request was due.

    python benchmarks/serving.py [--rate N] [--seconds N]                     the service alone: who decides is a loop
    python benchmarks/serving.py --url URL --key FILE [--rate N] [--seconds N]    a service that runs, with its flow

A caller that waits for one answer before it sends the next is slowed down by what it measures; here requests leave when
they are due, each on a connection that is free, however many are still open. `--key` is the file of the API key.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from multiprocessing.synchronize import Event
from pathlib import Path
from time import perf_counter
from typing import Any

import msgspec
import psutil
from rig import payments
from rig.table import Line, Table

from headrace.log.arrivals import Arrivals
from headrace.log.broker import Broker
from headrace.log.prompt import PromptProducer

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from bank.events import Payment  # noqa: E402 (the bank stands beside the benchmarks, not in the package)
from bank.traffic import Traffic  # noqa: E402

RAW = "decisions.raw"
WARM = timedelta(seconds=5)
TOLD = timedelta(seconds=10)
APP = f"""
import headrace as hr
from bank.events import Payment

app = hr.App("alone")
app.service("decide", ask=Payment, answer=app.topic({RAW!r}), default={{"decision": "review"}})
"""


@dataclass(slots=True)
class Seen:
    """What came back: latencies in seconds, and what the service says of its own stages."""

    took: list[float] = field(default_factory=list)
    stages: dict[str, list[float]] = field(default_factory=dict)
    kinds: Counter[str] = field(default_factory=Counter)
    late: int = 0
    """Requests that left more than a millisecond after they were due: the load's own slowness."""

    def take(self, status: int, body: bytes, took: float) -> None:
        self.took.append(took)
        if status != 200:
            self.kinds[f"HTTP {status}"] += 1
            return
        answer = msgspec.json.decode(body)
        self.kinds["degraded" if answer["degraded"] else "answered"] += 1
        for stage, milliseconds in answer["timings_ms"].items():
            if milliseconds is not None:
                self.stages.setdefault(stage, []).append(milliseconds / 1000)


class Load:
    """Calls one address, over connections that are kept."""

    def __init__(self, url: str, key: str) -> None:
        self._host, _, port = url.removeprefix("http://").rstrip("/").rpartition(":")
        self._port = int(port)
        self._head = (
            f"POST /decide?timings=1 HTTP/1.1\r\nHost: {self._host}\r\nX-Api-Key: {key}\r\n"
            "Content-Type: application/json\r\nContent-Length: "
        ).encode()
        self._free: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def run(self, rate: int, lasts: timedelta) -> Seen:
        traffic, seen = Traffic().live(lambda: datetime.now(UTC)), Seen()
        begun, waiting = perf_counter(), set()
        told = asyncio.create_task(self._progress(seen))
        for n in range(int(rate * lasts.total_seconds())):
            due = begun + n / rate
            while (wait := due - perf_counter()) > 0:
                await asyncio.sleep(wait)
            seen.late += perf_counter() - due > 0.001
            call = asyncio.create_task(self._call(next(traffic).payment, due, seen))
            waiting.add(call)
            call.add_done_callback(waiting.discard)
        await asyncio.gather(*waiting)
        told.cancel()
        return seen

    async def _progress(self, seen: Seen) -> None:
        """A line for every ten seconds: a mean over minutes would not show a stall."""
        while True:
            before, degraded = len(seen.took), seen.kinds["degraded"]
            await asyncio.sleep(TOLD.total_seconds())
            took, degraded = seen.took[before:] or [0.0], seen.kinds["degraded"] - degraded
            told = f"p50 {quantile(took, 0.5):.1f} ms, p99 {quantile(took, 0.99):.1f} ms, {degraded:,} degraded"
            print(f"{datetime.now(UTC):%H:%M:%S} {len(seen.took) - before:,} answers, {told}", file=sys.stderr)

    async def _call(self, payment: Payment, due: float, seen: Seen) -> None:
        body = msgspec.json.encode(payment)
        request = self._head + str(len(body)).encode() + b"\r\n\r\n" + body
        while True:
            kept = bool(self._free)
            reader, writer = self._free.pop() if kept else await asyncio.open_connection(self._host, self._port)
            try:
                writer.write(request)
                head = await reader.readuntil(b"\r\n\r\n")
                break
            except (asyncio.IncompleteReadError, ConnectionError):  # kept for so long that the service has closed it
                writer.close()
                if not kept:
                    raise
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        answer = await reader.readexactly(length)
        seen.take(int(head[9:12]), answer, perf_counter() - due)
        self._free.append((reader, writer))


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


def quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] * 1000


def report(seen: Seen, title: str, *, targets: bool) -> None:
    table = Table(title)
    for name, share, target in (("p50", 0.5, 15), ("p99", 0.99, 100), ("p99.9", 0.999, None)):
        found = quantile(seen.took, share)
        met = found <= target if targets and target else None
        table.add(Line(what=name, figure=f"{found:.1f} ms", target=f"<= {target} ms" if target else "", met=met))
    degraded = 100 * seen.kinds["degraded"] / len(seen.took)
    table.add(Line(what="degraded", figure=f"{degraded:.2f} %", target="< 1 %", met=degraded < 1 if targets else None))
    for stage, values in seen.stages.items():
        shown = f"{quantile(values, 0.5):.2f} / {quantile(values, 0.99):.1f} ms"
        table.add(Line(what=f"  {stage}, p50 / p99", figure=shown))
    told = ", ".join(f"{count:,} {kind}" for kind, count in seen.kinds.items())
    print(f"\n{told}; {seen.late:,} left late")


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
        report(asyncio.run(measured(given.url, given.key.read_text().strip())), title, targets=True)
    else:
        with alone() as (url, key, service):
            before = sum(service.cpu_times()[:2])
            seen = asyncio.run(measured(url, key))
            cost = (sum(service.cpu_times()[:2]) - before) / (given.rate * (WARM.total_seconds() + given.seconds))
            report(seen, f"{title}, the service alone", targets=False)
            print(f"the service used {cost * 1000:.2f} ms of CPU for each")


if __name__ == "__main__":
    main()
