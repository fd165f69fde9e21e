"""Tables: the latest value per key, rebuilt from the log."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta
from itertools import islice

import pytest
from confluent_kafka import Producer as BareProducer
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource

from headrace.base.errors import BadEvent
from headrace.base.money import money
from headrace.log import dead, topics
from headrace.log.broker import Broker
from headrace.log.produce import Producer
from headrace.log.read import read
from headrace.log.table import Table
from headrace.model.event import event
from headrace.model.topic import Topic
from tests.log.paying import START, Declare, payments, send, topic_of, until


def test_the_latest_value_of_each_key(broker: Broker, declare: Declare) -> None:
    payment = declare(partitions=3, compact=True)
    send(broker, payment, payments(payment, 100))
    with Table(broker, payment) as table:
        assert len(table) == 10
        assert table.get("c7").payment_id == "p97"
        assert table.get("nobody") is None
        assert {card: row.payment_id for card, row in table.snapshot().items()} == {
            f"c{n}": f"p{90 + n}" for n in range(10)
        }


def test_a_tombstone_deletes_and_a_later_value_comes_back(broker: Broker, declare: Declare) -> None:
    payment = declare(compact=True)
    late = START + timedelta(seconds=100)
    with Producer(broker, payment, acks=1) as producer:
        producer.send_many(payments(payment, 20))
        producer.send_tombstone("c1", at=late)
        producer.send_tombstone("c2", at=late)
        producer.send_tombstone("nobody", at=late)
        producer.send(payment("back", "c2", money(1), late + timedelta(seconds=1)))
    with Table(broker, payment) as table:
        assert table.get("c1") is None
        assert table.get("c2").payment_id == "back"
        assert len(table) == 9


def test_j6_an_older_version_that_comes_late_changes_nothing(broker: Broker, declare: Declare) -> None:
    payment = declare(compact=True)
    later, earlier = START + timedelta(seconds=9), START
    with Producer(broker, payment, acks=1) as producer:
        producer.send(payment("new", "c1", money(1), later))
        producer.send(payment("old", "c1", money(1), earlier))
        producer.send(payment("same time, later offset", "c2", money(1), later))
        producer.send(payment("wins", "c2", money(1), later))
        producer.send_tombstone("c3", at=later)
        producer.send(payment("deleted since", "c3", money(1), earlier))
        producer.send(payment("kept", "c4", money(1), later))
        producer.send_tombstone("c4", at=earlier)
    with Table(broker, payment) as table:
        assert {card: row.payment_id for card, row in table.snapshot().items()} == {
            "c1": "new",
            "c2": "wins",
            "c4": "kept",
        }


def test_refresh_reads_on_from_where_it_was(broker: Broker, declare: Declare) -> None:
    payment = declare(partitions=2, compact=True)
    with Table(broker, payment) as table:
        assert (len(table), table.refresh()) == (0, 0)
        send(broker, payment, payments(payment, 50))
        assert len(table) == 0
        assert (table.refresh(), len(table)) == (50, 10)
        assert table.refresh() == 0


def test_follow_tells_each_change(broker: Broker, declare: Declare) -> None:
    payment = declare(compact=True)
    first, second = payments(payment, 2, cards=1)
    send(broker, payment, [first])
    with Table(broker, payment) as table:

        def change() -> None:
            with Producer(broker, payment, acks=1) as producer:
                producer.send(second)
                producer.send(first)  # older: no change
                producer.send_tombstone("c0")

        threading.Thread(target=change).start()
        updated, deleted = islice(table.follow(), 2)
    assert (updated.key, updated.before, updated.after) == (b"c0", first, second)
    assert (deleted.before, deleted.after) == (second, None)


def test_composite_keys(broker: Broker, topic: str) -> None:
    @event(topic=topic, key="country, number")
    class Branch:
        country: str
        number: int
        name: str

    topics.ensure(broker, Topic(name=topic, compact=True))
    send(broker, Branch, [Branch("de", 7, "old"), Branch("de", 7, "new"), Branch("fr", 7, "paris")])
    with Table(broker, Branch) as table:
        assert table.get("de", 7) == Branch("de", 7, "new")
        assert set(table.snapshot()) == {("de", 7), ("fr", 7)}


def test_b1_rows_that_cannot_be_read_are_dead_letters_once(broker: Broker, declare: Declare) -> None:
    payment = declare(compact=True)
    bare = BareProducer(broker.config())
    bare.produce(topic_of(payment), key=b"k", value=b"{}")
    bare.flush()
    send(broker, payment, payments(payment, 3))
    for _ in range(2):
        with Table(broker, payment, app="bank") as table:
            assert (len(table), table.dead) == (3, 1)
    assert [letter.offset for letter in dead.letters(broker, topic_of(payment))] == [0]


@pytest.fixture
def busy_cleaner(broker: Broker) -> None:
    """The broker looks for something to compact several times a second instead of each 15 s."""
    there = ConfigResource(
        ConfigResource.Type.BROKER,
        "1",
        incremental_configs=[ConfigEntry("log.cleaner.backoff.ms", "200", incremental_operation=AlterConfigOpType.SET)],
    )
    broker.ask(lambda admin: admin.incremental_alter_configs([there]))


@pytest.mark.usefixtures("busy_cleaner")
def test_a_table_rebuilt_after_compaction_is_the_same(broker: Broker, declare: Declare) -> None:
    quick = {
        "segment.bytes": "1048576",
        "segment.ms": "100",
        "min.cleanable.dirty.ratio": "0.001",
        "max.compaction.lag.ms": "100",
        "delete.retention.ms": "0",
    }
    payment = declare(compact=True, extra=quick)
    send(broker, payment, payments(payment, 500))
    with Producer(broker, payment, acks=1) as producer:
        producer.send_tombstone("c3")
    with Table(broker, payment) as table:
        before = table.snapshot()

    def compacted() -> bool:
        send(
            broker, payment, [payment("tick", "tick", money(0), START)]
        )  # rolls the segment, which may then be cleaned
        return sum(1 for _ in read(broker, topic_of(payment))) < 200

    until(compacted, within=60)
    with Table(broker, payment) as table:
        after = table.snapshot()
    assert after.pop("tick")
    assert after == before
    assert "c3" not in after


def test_a_table_needs_a_key_and_a_topic(broker: Broker) -> None:
    @event(topic="t")
    class Keyless:
        at: datetime

    with pytest.raises(BadEvent, match="cannot be a table"):
        Table(broker, Keyless)
