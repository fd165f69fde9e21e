"""The producer: partitions as Java's, nothing lost without an error, backpressure instead of memory."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from itertools import islice

import pytest

from headrace.base.errors import BadEvent, RecordTooLarge, TopicMissing, UsageError, WrongType
from headrace.base.money import money
from headrace.log.broker import Broker
from headrace.log.consume import Consumer
from headrace.log.produce import Producer
from headrace.log.read import read
from headrace.model.event import event
from headrace.model.topic import Topic
from tests.log.paying import START, Declare, payment_on, payments, send, topic_of

# Keys and hashes from the tests of Kafka's Java client (UtilsTest.testMurmur2).
JAVA = {
    "21": -973932308,
    "foobar": -790332482,
    "a-little-bit-long-string": -985981536,
    "a-little-bit-longer-string": -1486304829,
    "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    "abc": 479470107,
}


def test_f1_keys_go_to_the_partition_java_would_choose(broker: Broker, declare: Declare) -> None:
    payment = declare(partitions=7)
    send(broker, payment, [payment(card, card, money(1), START) for card in JAVA])
    found = {message.key().decode(): message.partition() for message in read(broker, topic_of(payment))}
    assert found == {card: (hash & 0x7FFFFFFF) % 7 for card, hash in JAVA.items()}


def test_records_of_one_key_stay_in_order(broker: Broker, declare: Declare) -> None:
    payment = declare(partitions=3)
    send(broker, payment, payments(payment, 300))
    seen: dict[bytes, list[int]] = {}
    for message in read(broker, topic_of(payment)):
        seen.setdefault(message.key(), []).append(message.timestamp()[1])
    assert len(seen) == 10
    assert all(times == sorted(times) for times in seen.values())


def test_round_robin_deals_evenly_whatever_the_key(broker: Broker, declare: Declare) -> None:
    payment = declare(partitions=3)
    send(broker, payment, payments(payment, 30, cards=1), spread="round-robin")
    assert Counter(message.partition() for message in read(broker, topic_of(payment))) == {0: 10, 1: 10, 2: 10}


def test_a_full_queue_slows_the_sender_and_loses_nothing(broker: Broker, declare: Declare) -> None:
    payment = declare()
    send(broker, payment, payments(payment, 5_000), queue=50)
    assert sum(1 for _ in read(broker, topic_of(payment))) == 5_000


@pytest.mark.parametrize("compression", ["none", "lz4", "zstd", "snappy", "gzip"])
def test_every_compression_can_be_read(broker: Broker, declare: Declare, compression: str) -> None:
    payment = declare()
    send(broker, payment, payments(payment, 3), compression=compression)
    assert sum(1 for _ in read(broker, topic_of(payment))) == 3


@pytest.mark.parametrize("acks", ["all", 1, 0])
def test_acks_can_be_chosen(broker: Broker, declare: Declare, acks: str | int) -> None:
    payment = declare()
    send(broker, payment, payments(payment, 3), acks=acks)
    assert sum(1 for _ in read(broker, topic_of(payment))) == 3


def test_a_record_over_the_clients_limit_is_refused_at_once(broker: Broker, declare: Declare) -> None:
    payment = declare()
    with Producer(broker, payment, max_bytes=2_000) as producer:
        with pytest.raises(RecordTooLarge) as refused:
            producer.send(payment("p" * 3_000, "c1", money(1), START))
        producer.send(payment("small", "c1", money(1), START))
    assert topic_of(payment) in refused.value.what
    assert "its value has 3,0" in refused.value.why
    assert [m.key() for m in read(broker, topic_of(payment))] == [b"c1"]


def test_a_record_over_the_topics_limit_is_raised_at_flush(broker: Broker, declare: Declare) -> None:
    payment = declare(extra={"max.message.bytes": "2000"})
    producer = Producer(broker, payment, compression="none")
    producer.send(payment("p" * 3_000, "c1", money(1), START))
    with pytest.raises(RecordTooLarge):
        producer.flush()
    assert [message.key() for message in producer.undelivered] == [b"c1"]
    producer.flush()  # told once


def test_a_missing_topic_is_said_before_anything_is_sent(broker: Broker) -> None:
    with pytest.raises(TopicMissing):
        Producer(broker, payment_on("nobody-made-this"))


def test_an_event_without_topic_cannot_be_sent(broker: Broker) -> None:
    @event
    class Plain:
        a: int

    with pytest.raises(BadEvent, match="has no topic"):
        Producer(broker, Plain)


def test_events_of_another_class_are_refused_unless_the_topic_is_open(broker: Broker, declare: Declare) -> None:
    payment = declare()
    other = payment_on("other")
    with Producer(broker, payment) as producer, pytest.raises(WrongType, match="this producer sends Payment"):
        producer.send(other("p1", "c1", money(1), START))
    with Producer(broker, Topic(name=topic_of(payment))) as producer:
        producer.send_many([other("p1", "c1", money(1), START), payment("p2", "c1", money(1), START)])
    assert sum(1 for _ in read(broker, topic_of(payment))) == 2


def test_a_tombstone_has_the_events_key_and_no_value(broker: Broker, declare: Declare) -> None:
    payment = declare()
    with Producer(broker, payment) as producer:
        producer.send_tombstone("c1", at=START)
    (found,) = read(broker, topic_of(payment))
    assert (found.key(), found.value(), found.timestamp()[1]) == (b"c1", None, 1793718000000)
    with Producer(broker, Topic(name=topic_of(payment))) as producer, pytest.raises(UsageError):
        producer.send_tombstone("c1")


def test_the_blocks_own_error_is_not_hidden(broker: Broker, declare: Declare) -> None:
    payment = declare()
    with pytest.raises(ZeroDivisionError), Producer(broker, payment) as producer:
        producer.send_many(payment(f"p{1 // n}", "c1", money(1), START) for n in (1, 0))
    assert sum(1 for _ in read(broker, topic_of(payment))) == 1


def test_t7_a_mark_is_a_record_of_its_own_that_readers_pass_over(broker: Broker, declare: Declare) -> None:
    payment = declare(partitions=2)
    with Producer(broker, payment, acks=1) as producer:
        producer.send_many(payments(payment, 2, cards=1))
        producer.mark(START)
        producer.mark(START + timedelta(seconds=5, microseconds=1), partition=1)
        with pytest.raises(UsageError, match="has no partition 2"):
            producer.mark(START, partition=2)

    marks = [m for m in read(broker, topic_of(payment)) if m.value() is None]
    assert sorted((m.partition(), m.headers(), m.key(), m.timestamp()[1]) for m in marks) == [
        (0, [("hr-mark", b"1793718000000000")], None, 1793718000000),
        (1, [("hr-mark", b"1793718000000000")], None, 1793718000000),
        (1, [("hr-mark", b"1793718005000001")], None, 1793718005000),
    ]
    with Consumer(broker, payment, group=topic_of(payment), app="bank") as reader:
        assert [record.event.payment_id for record in islice(reader.records(idle="20 s"), 2)] == ["p0", "p1"]
        assert list(reader.records(idle="1 s")) == []
        assert reader.dead == 0
