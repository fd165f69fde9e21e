"""Requests to a decision service at a steady rate: an open loop; latencies count from the instant one was due."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter

import msgspec

sys.path.insert(0, str(Path(__file__).parents[2]))

from bank.events import Payment
from bank.traffic import Traffic

TOLD = timedelta(seconds=10)


def quantile(seconds: list[float], share: float) -> float:
    """In milliseconds."""
    return sorted(seconds)[min(len(seconds) - 1, int(share * len(seconds)))] * 1000


@dataclass(frozen=True, slots=True)
class Answer:
    """When it was due and how long it took, in seconds of one clock; what the service says of its own stages, in ms."""

    due: float
    took: float
    kind: str
    id: str = ""
    """Of the payment; empty where nothing was decided."""
    stages: dict[str, float | None] = field(default_factory=dict)

    @property
    def degraded(self) -> bool:
        return self.kind == "degraded"


@dataclass(slots=True)
class Seen:
    """What came back."""

    answers: list[Answer] = field(default_factory=list)
    late: int = 0
    """Requests that left more than a millisecond after they were due: the load's own slowness."""

    @property
    def took(self) -> list[float]:
        return [one.took for one in self.answers]

    @property
    def ids(self) -> list[str]:
        """Of the payments that were decided."""
        return [one.id for one in self.answers if one.id]

    @property
    def kinds(self) -> Counter[str]:
        return Counter(one.kind for one in self.answers)

    @property
    def degraded(self) -> int:
        return self.kinds["degraded"]

    def stage(self, name: str) -> list[float]:
        """In seconds, of those answers that have it."""
        return [value / 1000 for one in self.answers if (value := one.stages.get(name)) is not None]

    def between(self, since: float, until: float) -> Seen:
        return Seen([one for one in self.answers if since <= one.due < until])

    def take(self, due: float, status: int, body: bytes) -> None:
        took = perf_counter() - due
        if status != 200:
            self.answers.append(Answer(due, took, f"HTTP {status}"))
            return
        told = msgspec.json.decode(body)
        kind = "degraded" if told["degraded"] else "answered"
        self.answers.append(Answer(due, took, kind, told["payment_id"], told["timings_ms"]))

    def __str__(self) -> str:
        took = self.took or [0.0]
        figures = f"p50 {quantile(took, 0.5):.1f} ms, p99 {quantile(took, 0.99):.1f} ms"
        return f"{len(self.answers):,} answers, {figures}, {self.degraded:,} degraded"


class Load:
    """Calls one address, over connections that are kept. A caller that waits for one answer before it sends the next is
    slowed down by what it measures; here requests leave when they are due, each on a connection that is free, however
    many are still open."""

    def __init__(self, url: str, key: str) -> None:
        self._host, _, port = url.removeprefix("http://").rstrip("/").rpartition(":")
        self._port = int(port)
        self._head = (
            f"POST /decide?timings=1 HTTP/1.1\r\nHost: {self._host}\r\nX-Api-Key: {key}\r\n"
            "Content-Type: application/json\r\nContent-Length: "
        ).encode()
        self._free: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def run(self, rate: int, lasts: timedelta, *, every: timedelta = TOLD) -> Seen:
        """So many a second for so long; a line `every` so often: a mean over minutes would not show a stall."""
        traffic, seen = Traffic().live(lambda: datetime.now(UTC)), Seen()
        begun, waiting = perf_counter(), set()
        told = asyncio.create_task(self._progress(seen, every))
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

    async def _progress(self, seen: Seen, every: timedelta) -> None:
        while True:
            before = len(seen.answers)
            await asyncio.sleep(every.total_seconds())
            print(f"{datetime.now(UTC):%H:%M:%S} {Seen(seen.answers[before:])}", file=sys.stderr)

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
        seen.take(due, int(head[9:12]), answer)
        self._free.append((reader, writer))
