"""Reading a stretch of a topic, partitions merged by time."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest

from headrace.base.errors import TopicMissing, UsageError
from headrace.log.broker import Broker
from headrace.log.codec import Codec
from headrace.log.read import Last, Offset, read
from tests.log.paying import START, Declare, payments, send, topic_of


@pytest.fixture
def payment(broker: Broker, declare: Declare) -> Any:
    """Sixty payments, a second apart, over three partitions."""
    declared = declare(partitions=3)
    send(broker, declared, payments(declared, 60))
    return declared


def shown(broker: Broker, payment: Any, *start: Any) -> list[str]:
    codec = Codec(payment)
    return [codec.decode(message.value()).payment_id for message in read(broker, topic_of(payment), *start)]


def named(first: int, last: int) -> list[str]:
    return [f"p{n}" for n in range(first, last)]


def test_everything_comes_in_the_order_of_time(broker: Broker, payment: Any) -> None:
    assert shown(broker, payment) == named(0, 60)


def test_the_last_n_of_all_partitions_together(broker: Broker, payment: Any) -> None:
    assert shown(broker, payment, Last(10)) == named(50, 60)
    assert shown(broker, payment, Last(1_000)) == named(0, 60)


def test_the_last_n_where_transactions_end_between_them(broker: Broker, declare: Declare) -> None:
    event = declare()
    client = broker.producer({"transactional.id": topic_of(event)})
    client.init_transactions()
    for n in range(12):  # each record is followed by the end of its transaction, or by nothing to be seen
        client.begin_transaction()
        client.produce(topic_of(event), f"{n}", partition=0, timestamp=n + 1)
        client.abort_transaction() if n % 3 == 2 else client.commit_transaction()
    assert [m.value() for m in read(broker, topic_of(event), Last(5))] == [b"4", b"6", b"7", b"9", b"10"]


def test_from_a_time(broker: Broker, payment: Any) -> None:
    assert shown(broker, payment, START + timedelta(seconds=45)) == named(45, 60)
    assert shown(broker, payment, START + timedelta(hours=1)) == []


def test_from_an_offset_in_every_partition(broker: Broker, payment: Any) -> None:
    found = list(read(broker, topic_of(payment), Offset(5)))
    assert min(message.offset() for message in found) == 5
    assert len(found) == 60 - 3 * 5
    assert shown(broker, payment, Offset(1_000)) == []


def test_following_goes_on_where_the_stretch_ended(broker: Broker, payment: Any) -> None:
    stream = read(broker, topic_of(payment), Last(5), follow=True)
    assert [next(stream).timestamp()[1] // 1000 for _ in range(5)] == list(range(1793718055, 1793718060))
    threading.Thread(target=send, args=(broker, payment, payments(payment, 5, first=60))).start()
    codec = Codec(payment)
    assert sorted(codec.decode(next(stream).value()).payment_id for _ in range(5)) == named(60, 65)
    stream.close()


def test_an_empty_topic_has_nothing(broker: Broker, declare: Declare) -> None:
    assert list(read(broker, topic_of(declare()))) == []


def test_starts_that_make_no_sense(broker: Broker) -> None:
    with pytest.raises(UsageError):
        Last(0)
    with pytest.raises(UsageError):
        Offset(-1)
    with pytest.raises(TopicMissing):
        next(read(broker, "nobody-made-this"))
