"""What the live page shows: one snapshot a second, of the desk's figures and of what the followed topics say."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

import msgspec

from headrace.base.clock import EPOCH, utc
from headrace.base.errors import BadTime, DataError, LogError, NotReady
from headrace.base.money import money as money_of
from headrace.expr.types import MONEY
from headrace.log.arrivals import Arrivals
from headrace.log.broker import Broker
from headrace.model.service import Service
from headrace.serve import LOGGER
from headrace.serve.desk import Desk
from headrace.serve.figures import BOUNDS, quantile
from headrace.serve.memory import Row, told_of
from headrace.serve.money import Money
from headrace.serve.reviews import Reviews

KEEP = timedelta(days=7)
"""How far back alerts, labels and notes are read at the start."""
_POINTS = 900  # seconds of history that a page gets when it opens
_SHOWN = 12
_CORRECTED = 3  # reviews labelled last, shown with whose word it was
_ALLOW = "allow"
_PATIENCE = timedelta(hours=1)
"""For reading back: nobody waits for it, and there may be much."""


class Live:
    """Follows the topics that people look at, beside the desk and never in its way: a reader and a pace of its own."""

    def __init__(self, desk: Desk, broker: Broker) -> None:
        self._desk, self._broker, self.now = desk, broker, desk.now
        self.service: Service = desk.service
        self._reviews, self.money = Reviews(self.service), Money(KEEP.total_seconds())
        self._caught_up = False
        self._amount = next((c.name for c in self.service.ask.columns if c.type == MONEY), "")
        ask = self.service.ask
        self._names = {
            "service": self.service.name,
            "ask": ask.name,
            "id": ask.id,
            "time": ask.time,
            "amount": self._amount,
            "money": bool(self._amount) and self.service.label is not None,
            "batch": self.service.batch is not None,
        }
        self._columns = (ask.id, ask.time, self._amount, "decision", "reasons", "score")
        self._alerts: deque[Row] = deque(maxlen=_SHOWN)
        self._points: deque[Row] = deque(maxlen=_POINTS)
        self._answers: deque[tuple[int, int]] = deque(maxlen=10)
        self._before = (0, 0, 0)
        self._tick = asyncio.Event()
        self._readers: list[Arrivals] = []

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._tasks = [asyncio.create_task(self._follow()), asyncio.create_task(self._tick_on())]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        for reader in self._readers:
            await asyncio.to_thread(reader.close)

    async def _follow(self) -> None:
        try:
            for names in followed(self.service):
                since = self.now() - KEEP
                reader = await asyncio.to_thread(Arrivals, self._broker, names, self._take, since=since, patient=True)
                self._readers.append(reader)
                await asyncio.to_thread(reader.catch_up, within=_PATIENCE)
        except LogError as broken:  # decisions go on without the page's lists
            LOGGER.error("alerts and labels cannot be read: %s", broken.what)
        else:
            self._caught_up = True
        self._reviews.settle()
        self._count_reviews()

    @property
    def reviews(self) -> Reviews:
        """The queue, once it is known: before that it would show what was labelled long ago."""
        if not self._caught_up:
            raise NotReady("the queue is still being read from the log", fix="try again in a second")
        return self._reviews

    async def next(self) -> Row:
        """The snapshot of the next second."""
        await self._tick.wait()
        return self.snapshot()

    def history(self) -> list[Row]:
        return list(self._points)

    def snapshot(self) -> Row:
        figures, recent = self._desk.figures, self._desk.figures.recent()
        firsts, all_answers = (sum(column) for column in zip(*self._answers, strict=True)) if self._answers else (0, 0)
        waiting = self._reviews.due(self.now(), most=_SHOWN) if self._caught_up else []
        due = [told_of(one.row, self._columns) for one in waiting]
        done = self._reviews.done(most=_CORRECTED) if self._caught_up else []
        labelled = [told_of(one.as_dict(), (*self._columns, "fraud", "by")) for one in done]
        return {
            "point": self._points[-1] if self._points else None,
            "totals": {
                "asked": sum(figures.latencies.counts),
                "decisions": figures.decisions,
                "degraded": sum(figures.degraded.values()),
                "twins": figures.twins,
                "late": figures.late,
            },
            "latency": {
                "bounds": BOUNDS,
                "counts": recent,
                "p50": quantile(recent, 0.5),
                "p99": quantile(recent, 0.99),
            },
            "alerts": list(self._alerts),
            "reviews": {
                "waiting": len(self._reviews) if self._caught_up else 0,
                "due": due,
                "labelled": labelled,
            },
            "parts": {
                **self._desk.ready,
                "in_flight": figures.in_flight,
                "answers_per_event": round(all_answers / firsts, 2) if firsts else None,
            },
            "names": self._names,
        }

    async def _tick_on(self) -> None:
        while True:
            await asyncio.sleep(1)
            self._points.append(self._point())
            self._desk.figures.next_second()
            ticked, self._tick = self._tick, asyncio.Event()
            ticked.set()

    def _point(self) -> Row:
        """One second: what came since the one before, and sums of money as they stand."""
        figures = self._desk.figures
        firsts, degraded = sum(figures.decisions.values()), sum(figures.degraded.values())
        further = sum(figures.twins.values())
        before, self._before = self._before, (firsts, further, degraded)
        self._answers.append((firsts - before[0], firsts - before[0] + further - before[1]))
        recent = figures.recent(10)
        return {
            "at": round(self.now().timestamp(), 1),
            "events": firsts - before[0],
            "degraded": degraded - before[2],
            "p50": quantile(recent, 0.5),
            "p99": quantile(recent, 0.99),
            "fraud": float(self.money.fraud),
            "saved": float(self.money.saved),
            "saved_by_batch": float(self.money.saved_by_batch),
        }

    def _take(self, messages: list[Any]) -> None:
        """Called in the reader's thread."""
        self._loop.call_soon_threadsafe(self._apply, list(read_rows(self.service, messages)))

    def _apply(self, read: list[tuple[str, str, Row, bytes]]) -> None:
        for record in read:
            try:
                self._apply_one(*record)
            except (DataError, ArithmeticError):
                self._desk.figures.unreadable += 1
        self._count_reviews()

    def _count_reviews(self) -> None:
        if self._caught_up:
            self._desk.figures.waiting, self._desk.figures.fallen = len(self._reviews), self._reviews.fallen

    def _apply_one(self, topic: str, id: str, row: Row, value: bytes) -> None:
        try:
            self._count_money(topic, id, row)  # it needs less of a label than the queue does
        finally:
            self._reviews.take(topic, id, row, value)

    def _count_money(self, topic: str, id: str, row: Row) -> None:
        service, money = self.service, self.money
        if service.alerts is not None and topic == service.alerts.name and row.get("decision") != _ALLOW:
            money.stopped(id)
            self._alerts.appendleft(told_of(row, self._columns))
        elif service.label is not None and topic == service.label.topic and self._amount in row:
            fraud = row.get("fraud")
            if isinstance(fraud, int):
                money.labelled(id, bool(fraud), money_of(str(row[self._amount])), time_of(row.get(service.label.time)))
        elif service.batch is not None and topic == service.batch.name:
            money.stopped_by_batch(id)


def time_of(value: Any) -> datetime:
    """The time of a label, or of one that cannot be read a time before all others."""
    try:
        return utc(msgspec.convert(value, datetime))
    except (msgspec.ValidationError, BadTime):
        return EPOCH


def followed(service: Service) -> list[list[str]]:
    """The topics that reviews and money are made from: what labels are about is read up to its end before them."""
    first = [] if service.alerts is None else [service.alerts.name, service.notes.name]
    first += [] if service.batch is None else [service.batch.name]
    return [names for names in (first, [] if service.label is None else [service.label.topic]) if names]


def read_rows(service: Service, messages: Iterable[Any]) -> Iterable[tuple[str, str, Row, bytes]]:
    """Topic, id, row and bytes of each record that is a row with an id."""
    for message in messages:
        value, topic = message.value(), message.topic()
        try:
            row = msgspec.json.decode(value or b"")
            id = row["id" if topic == service.notes.name else service.ask.id]
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError, KeyError):
            continue
        yield topic, str(id), row, value
