"""The prompt producer: told when a record is safe; while the broker is away, as much waits as has place."""

from __future__ import annotations

import pytest

from headrace.base.errors import Overloaded
from headrace.log.broker import Broker
from headrace.log.prompt import PromptProducer
from headrace.log.read import read
from tests.log.paying import Declare, topic_of, until


def test_a_record_is_on_the_log_when_its_sender_is_told(broker: Broker, declare: Declare) -> None:
    topic, safe = topic_of(declare()), []  # type: ignore[var-annotated]
    producer = PromptProducer(broker)
    producer.send(topic, (b"k", b"v", [("hr-id", b"1")], 1_000), lambda: safe.append(True))
    until(lambda: safe)
    (message,) = read(broker, topic)
    assert (message.key(), message.value(), message.timestamp()[1]) == (b"k", b"v", 1_000)
    assert producer.answers(topic, within="5 s")
    assert producer.close() == 0


def test_a_broker_that_is_away_is_waited_for_until_there_is_no_more_place() -> None:
    producer = PromptProducer(Broker(bootstrap="127.0.0.1:1"), queue=2)
    for n in range(2):
        producer.send("nowhere", (None, str(n).encode(), [], 0))
    with pytest.raises(Overloaded):
        producer.send("nowhere", (None, b"2", [], 0))
    assert not producer.answers("nowhere", within="100 ms")
    assert producer.close(within="100 ms") == 2
