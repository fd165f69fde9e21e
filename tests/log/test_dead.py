"""Dead letters: kept byte for byte, shown, and retried by their own app alone (rule B1)."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Producer as BareProducer

from headrace.base.errors import UsageError
from headrace.base.ids import random_id
from headrace.log import dead, groups, topics
from headrace.log.broker import Broker
from headrace.log.consume import Consumer
from headrace.log.offsets import record_time
from headrace.log.read import read
from tests.log.paying import Declare, ids, payments, send, topic_of, until


@pytest.fixture
def payment(broker: Broker, declare: Declare) -> Any:
    """One payment that can be read, between two records that cannot."""
    declared = declare()
    bare = BareProducer(broker.config())
    bare.produce(topic_of(declared), key=b"k1", value=b"broken", headers=[("trace", b"1")], timestamp=1793718000000)
    bare.flush()
    send(broker, declared, payments(declared, 1))
    bare.produce(topic_of(declared), key=None, value=b"{}")
    bare.flush()
    return declared


def run(broker: Broker, payment: Any, app: str, records: int = 3) -> tuple[list[str], int]:
    """A run of an app over this many records: what it read, and how many died."""
    seen: list[str] = []
    with Consumer(broker, payment, group=app, app=app) as consumer:
        until(lambda: seen.extend(ids(consumer.consume(timeout="100 ms"))) or len(seen) + consumer.dead >= records)
        return seen, consumer.dead


def test_b1_key_value_headers_of_a_dead_letter(broker: Broker, payment: Any) -> None:
    app = f"app-{random_id()[:8]}"
    assert run(broker, payment, app) == (["p0"], 2)
    raw = read(broker, dead.dead_topic(topic_of(payment)))
    by_key = {message.key().decode(): message for message in raw}
    first = by_key[f"{app}/{topic_of(payment)}/0/0"]
    assert first.value() == b"broken"
    assert first.timestamp()[1] == 1793718000000
    assert dict(first.headers()) == {
        "trace": b"1",
        "hr-dead-app": app.encode(),
        "hr-dead-topic": topic_of(payment).encode(),
        "hr-dead-partition": b"0",
        "hr-dead-offset": b"0",
        "hr-dead-reason": b"undecodable",
        "hr-dead-error": b"a value of Payment is no JSON: JSON is malformed: invalid character (byte 0)",
        "hr-dead-key": b"k1",
    }
    assert "hr-dead-key" not in dict(by_key[f"{app}/{topic_of(payment)}/0/2"].headers())


def test_letters_are_listed_and_shown(broker: Broker, payment: Any) -> None:
    app = f"app-{random_id()[:8]}"
    run(broker, payment, app)
    found = list(dead.letters(broker, topic_of(payment)))
    assert sorted(letter.offset for letter in found) == [0, 2]
    assert dead.show(broker, topic_of(payment), found[0].id) == found[0]
    with pytest.raises(UsageError, match="has no dead letter"):
        dead.show(broker, topic_of(payment), "x/y/0/0")


def test_a_topic_where_nothing_died_has_no_letters(broker: Broker, declare: Declare) -> None:
    assert list(dead.letters(broker, topic_of(declare()))) == []


def test_b1_a_retry_reaches_only_the_app_it_died_in(broker: Broker, payment: Any) -> None:
    app, other = f"app-{random_id()[:8]}", f"app-{random_id()[:8]}"
    assert run(broker, payment, app) == (["p0"], 2)
    assert run(broker, payment, other) == (["p0"], 2)
    mine = [letter for letter in dead.letters(broker, topic_of(payment)) if letter.app == app and letter.offset == 0]
    assert dead.retry(broker, mine) == 1

    (again,) = read(broker, dead.retry_topic(app, topic_of(payment)))
    assert (again.key(), again.value(), again.headers()) == (b"k1", b"broken", [("trace", b"1")])
    assert again.timestamp()[1] == record_time(mine[0].time)
    assert run(broker, payment, app, records=1) == ([], 1)  # still broken: it dies again, under its original topic
    origins = [letter.topic for letter in dead.letters(broker, topic_of(payment)) if letter.app == app]
    assert sorted(origins) == sorted([topic_of(payment)] * 2 + [dead.retry_topic(app, topic_of(payment))])
    assert {lag.topic for lag in groups.lag(broker, other)} == {topic_of(payment)}
    died_twice = [letter for letter in dead.letters(broker, topic_of(payment)) if letter.topic.endswith(".retry")]
    assert dead.retry(broker, died_twice) == 1
    assert topics.describe(broker, dead.retry_topic(app, topic_of(payment))).records == 2


def test_dead_topics_are_compacted_so_that_a_record_dies_once(broker: Broker, payment: Any) -> None:
    run(broker, payment, f"app-{random_id()[:8]}")
    assert topics.describe(broker, dead.dead_topic(topic_of(payment))).compact
