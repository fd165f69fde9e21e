"""Arrivals: what is there, then what comes; a taker's fault is told, not waited for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from headrace.log.arrivals import Arrivals
from headrace.log.broker import Broker
from tests.log.paying import START, Declare, payments, send, topic_of, until


def test_what_is_dated_since_comes_first_and_then_what_arrives(broker: Broker, declare: Declare) -> None:
    cls, found = declare(2), []  # type: ignore[var-annotated]
    send(broker, cls, payments(cls, 20))
    since = START + timedelta(seconds=10)
    reader = Arrivals(broker, [topic_of(cls)], lambda batch: found.extend(batch), since=since)
    try:
        reader.catch_up()
        assert {m.timestamp()[1] for m in found} >= {int((START.timestamp() + n) * 1000) for n in range(10, 20)}
        before = len(found)
        send(broker, cls, payments(cls, 5, first=20))
        until(lambda: len(found) == before + 5)
    finally:
        reader.close()


def test_an_empty_topic_is_caught_up_with_at_once(broker: Broker, declare: Declare) -> None:
    reader = Arrivals(broker, [topic_of(declare())], lambda batch: None, since=START, patient=True)
    reader.catch_up()
    assert reader.alive
    reader.close()


@dataclass(frozen=True, kw_only=True)
class Busy(Broker):
    """After one of the questions that it is asked, something happens."""

    after: int
    happens: Callable[[], None]
    asked: list[str] = field(default_factory=list)

    def ask(self, question: Any, *, topic: str = "") -> Any:
        answers = Broker.ask(self, question, topic=topic)
        self.asked.append(topic)
        if len(self.asked) == self.after:
            self.happens()
        return answers


@pytest.mark.parametrize("after", [1, 2, 3])
def test_what_comes_while_it_begins_is_not_passed_over(broker: Broker, declare: Declare, after: int) -> None:
    cls, found = declare(), list[Any]()
    busy = Busy(**asdict(broker), after=after, happens=lambda: send(broker, cls, payments(cls, 1)))
    reader = Arrivals(busy, [topic_of(cls)], found.extend, since=START + timedelta(days=-1))
    try:
        assert len(busy.asked) >= 3
        until(lambda: len(found) == 1)
    finally:
        reader.close()


def test_a_taker_that_fails_ends_the_reading_and_is_told(broker: Broker, declare: Declare) -> None:
    cls = declare()
    send(broker, cls, payments(cls, 1))

    def take(batch: list[Any]) -> None:
        raise ValueError("a fault of mine")

    reader = Arrivals(broker, [topic_of(cls)], take, since=START)
    with pytest.raises(ValueError, match="a fault of mine"):
        reader.catch_up()
    assert not reader.alive
    reader.close()
