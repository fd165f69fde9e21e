"""Arrivals: what is there, then what comes; a taker's fault is told, not waited for."""

from __future__ import annotations

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
