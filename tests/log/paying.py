"""Payments: the events that the log's tests send and read."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from headrace.base.money import Money, money
from headrace.log.broker import Broker
from headrace.log.produce import Producer
from headrace.model.event import event, event_type

START = datetime(2026, 11, 3, 15, tzinfo=UTC)

Declare = Callable[..., Any]


def payment_on(topic: str) -> Any:
    @event(topic=topic, key="card_id", time="at", id="payment_id")
    class Payment:
        payment_id: str
        card_id: str
        amount: Money
        at: datetime

    return Payment


def payments(cls: Any, count: int, *, first: int = 0, cards: int = 10, start: datetime = START) -> list[Any]:
    """p0, p1, ... one second apart, over a few cards."""
    return [cls(f"p{n}", f"c{n % cards}", money(n), start + timedelta(seconds=n)) for n in range(first, first + count)]


def send(broker: Broker, cls: Any, events: list[Any], *, acks: Any = 1, **how: Any) -> None:
    """Given data. acks=1, because an idempotent client waits half a second for its producer id."""
    with Producer(broker, cls, acks=acks, **how) as producer:
        producer.send_many(events)


def topic_of(cls: Any) -> str:
    return event_type(cls).topic


def ids(records: Any) -> list[str]:
    return [record.event.payment_id for record in records]


def until(condition: Callable[[], Any], *, within: float = 20.0) -> Any:
    """Waits for a condition; its value is the result."""
    deadline = time.monotonic() + within
    pause = 0.01
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(pause)
    return found
