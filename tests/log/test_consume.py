"""The consumer: groups, guarantees, seeking, backpressure, and dead letters instead of gaps."""

from __future__ import annotations

from datetime import timedelta
from itertools import islice
from typing import Any

import pytest
from confluent_kafka import Producer as BareProducer

from headrace.base.errors import BadEvent, TopicMissing, UsageError
from headrace.base.ids import random_id
from headrace.log import dead, groups
from headrace.log.broker import Broker
from headrace.log.consume import Consumer
from headrace.log.offsets import Place
from headrace.log.produce import Producer
from headrace.model.event import event
from tests.log.paying import START, Declare, ids, payment_on, payments, send, topic_of, until


@pytest.fixture
def group() -> str:
    return f"g-{random_id()[:12]}"


@pytest.fixture
def payment(broker: Broker, declare: Declare) -> Any:
    """Twenty payments in one partition."""
    declared = declare()
    send(broker, declared, payments(declared, 20))
    return declared


def named(first: int, last: int) -> list[str]:
    return [f"p{n}" for n in range(first, last)]


def rest(broker: Broker, payment: Any, group: str, *, last: str = "p19") -> list[str]:
    """What the next member of the group reads, up to the last there is."""
    found: list[str] = []
    with Consumer(broker, payment, group=group) as consumer:
        for record in consumer:
            found.append(record.event.payment_id)
            if found[-1] == last:
                break
    return found


def wait_for_partitions(consumer: Consumer[Any]) -> list[Place]:
    until(lambda: consumer.consume(1, timeout="100 ms") or consumer.assigned)
    return consumer.assigned


def test_a_record_is_the_event_and_its_place(broker: Broker, payment: Any, group: str) -> None:
    with Consumer(broker, payment, group=group) as consumer:
        record = next(iter(consumer))
    assert record.event == payments(payment, 1)[0]
    assert (record.topic, record.partition, record.offset, record.key) == (topic_of(payment), 0, 0, b"c0")
    assert record.time == START
    assert record.headers["hr-type"] == b"Payment"
    assert str(record).startswith(f"{topic_of(payment)}/0/0 Payment(")


def test_at_least_once_reads_again_what_was_in_hand_when_it_failed(broker: Broker, payment: Any, group: str) -> None:
    with pytest.raises(ZeroDivisionError), Consumer(broker, payment, group=group) as consumer:
        [1 // (4 - n) for n, _ in enumerate(consumer)]
    assert rest(broker, payment, group) == named(4, 20)


def test_at_most_once_skips_what_was_in_hand_when_it_failed(broker: Broker, payment: Any, group: str) -> None:
    consumer = Consumer(broker, payment, group=group, deliver="at-most-once", batch=5)
    with pytest.raises(ZeroDivisionError), consumer:
        [1 // (4 - n) for n, _ in enumerate(consumer)]
    assert rest(broker, payment, group) == named(5, 20)


def test_a_block_that_ends_well_has_processed_what_it_was_given(broker: Broker, payment: Any, group: str) -> None:
    with Consumer(broker, payment, group=group) as consumer:
        assert ids(islice(consumer, 5)) == named(0, 5)
    assert rest(broker, payment, group) == named(5, 20)


def test_a_loop_taken_up_again_goes_on(broker: Broker, payment: Any, group: str) -> None:
    with Consumer(broker, payment, group=group) as consumer:
        assert ids(islice(consumer, 5)) == named(0, 5)
        assert ids(consumer.consume(5)) == named(5, 10)
        assert ids(islice(consumer, 10)) == named(10, 20)


def test_manual_commits_only_what_is_said(broker: Broker, payment: Any, group: str) -> None:
    with Consumer(broker, payment, group=group, commit="manual") as consumer:
        records = list(islice(consumer, 10))
        consumer.commit(records[6])
    assert rest(broker, payment, group) == named(7, 20)


def test_manual_commit_of_everything_given_out(broker: Broker, payment: Any, group: str) -> None:
    with Consumer(broker, payment, group=group, commit="manual") as consumer:
        list(islice(consumer, 10))
        consumer.commit()
        list(islice(consumer, 5))
    assert rest(broker, payment, group) == named(10, 20)


def test_batches_as_asked_for(broker: Broker, payment: Any, group: str) -> None:
    with Consumer(broker, payment, group=group) as consumer:
        sizes: list[int] = []
        until(lambda: sizes.append(len(consumer.consume(8))) or sum(sizes) == 20)
    assert max(sizes) <= 8


def test_seek_by_offset_and_by_time(broker: Broker, payment: Any, group: str) -> None:
    with Consumer(broker, payment, group=group) as consumer:
        consumer.seek(15)
        assert ids(islice(consumer, 2)) == named(15, 17)
        consumer.seek(START + timedelta(seconds=3))
        assert ids(islice(consumer, 2)) == named(3, 5)
        consumer.seek("earliest")
        assert ids(islice(consumer, 20)) == named(0, 20)
        consumer.seek("latest")
        assert consumer.consume(1, timeout="300 ms") == []


def test_seek_in_one_partition_leaves_the_others_where_they_are(broker: Broker, declare: Declare, group: str) -> None:
    payment = declare(partitions=2)
    send(broker, payment, payments(payment, 40), spread="round-robin")
    with Consumer(broker, payment, group=group) as consumer:
        seen = list(islice(consumer, 40))
        assert sorted(ids(seen)) == sorted(named(0, 40))
        consumer.seek(18, places=[(topic_of(payment), 1)])
        assert ids(islice(consumer, 2)) == ["p37", "p39"]


def test_pause_holds_back_and_resume_goes_on(broker: Broker, payment: Any, group: str) -> None:
    with Consumer(broker, payment, group=group, batch=5) as consumer:
        assert ids(islice(consumer, 5)) == named(0, 5)
        consumer.pause()
        assert consumer.consume(5, timeout="500 ms") == []
        assert consumer.assigned == [(topic_of(payment), 0)]
        consumer.resume()
        assert ids(islice(consumer, 15)) == named(5, 20)


def test_groups_read_apart_from_each_other_fast_and_slow(broker: Broker, payment: Any, group: str) -> None:
    slow = Consumer(broker, payment, group=f"{group}-slow", batch=1)
    with slow, Consumer(broker, payment, group=f"{group}-fast") as fast:
        assert ids(islice(slow, 2)) == named(0, 2)
        assert ids(islice(fast, 20)) == named(0, 20)
        assert ids(islice(slow, 2)) == named(2, 4)
        slow.commit()
        fast.commit()
        assert [lag.records for lag in groups.lag(broker, f"{group}-slow")] == [16]
        assert [lag.records for lag in groups.lag(broker, f"{group}-fast")] == [0]


def test_members_share_partitions_and_are_told_when_they_move(broker: Broker, declare: Declare, group: str) -> None:
    payment = declare(partitions=4)
    told: list[tuple[str, list[Place]]] = []
    first = Consumer(
        broker,
        payment,
        group=group,
        on_assigned=lambda places: told.append(("assigned", places)),
        on_revoked=lambda places: told.append(("revoked", places)),
    )
    with first:
        assert len(wait_for_partitions(first)) == 4
        with Consumer(broker, payment, group=group) as second:
            until(
                lambda: (first.consume(1, timeout="50 ms"), second.consume(1, timeout="50 ms"), len(second.assigned))[2]
            )
            until(lambda: (first.consume(1, timeout="50 ms"), len(first.assigned) == 2)[1])
            assert sorted(first.assigned + second.assigned) == [(topic_of(payment), n) for n in range(4)]
    assert ("assigned", [(topic_of(payment), n) for n in range(4)]) in told
    assert [len(places) for what, places in told if what == "revoked"][:1] == [2]


def test_a_static_member_comes_back_without_a_rebalance(broker: Broker, declare: Declare, group: str) -> None:
    payment = declare(partitions=2)
    moves: list[str] = []
    other = Consumer(
        broker, payment, group=group, member="other",
        on_assigned=lambda _: moves.append("assigned"), on_revoked=lambda _: moves.append("revoked"),
    )  # fmt: skip
    with other:
        one = Consumer(broker, payment, group=group, member="one")
        until(lambda: (other.consume(1, timeout="50 ms"), one.consume(1, timeout="50 ms"), len(one.assigned) == 1)[2])
        until(lambda: (one.consume(1, timeout="50 ms"), other.consume(1, timeout="50 ms"), len(other.assigned) == 1)[2])
        held = one.assigned
        one.close()
        moves.clear()
        with Consumer(broker, payment, group=group, member="one") as again:
            until(lambda: (again.consume(1, timeout="50 ms"), other.consume(1, timeout="50 ms"), again.assigned)[2])
            assert again.assigned == held
        assert moves == []


def test_a_loop_may_end_when_nothing_comes(broker: Broker, payment: Any, group: str) -> None:
    with Consumer(broker, payment, group=group) as consumer:
        consumer.seek(18)
        assert ids(consumer.records(idle="3 s")) == named(18, 20)


def test_several_events_and_topics_in_one_loop(broker: Broker, declare: Declare, group: str) -> None:
    one, two = declare(), declare()
    send(broker, one, payments(one, 2))
    send(broker, two, payments(two, 3))
    with Consumer(broker, [one, two], group=group) as consumer:
        found = list(islice(consumer, 5))
    assert sorted(type(record.event) is one for record in found) == [False, False, False, True, True]


def test_several_events_on_one_topic_are_told_apart_by_type(broker: Broker, declare: Declare, group: str) -> None:
    payment = declare()

    @event(topic=topic_of(payment), key="card_id")
    class Refund:
        card_id: str

    send(broker, payment, payments(payment, 1))
    send(broker, Refund, [Refund("c1")])
    with Consumer(broker, [payment, Refund], group=group) as consumer:
        assert [type(record.event) for record in islice(consumer, 2)] == [payment, Refund]


def test_tombstones_come_as_none_where_they_are_asked_for(broker: Broker, declare: Declare, group: str) -> None:
    payment = declare()
    with Producer(broker, payment, acks=1) as producer:
        producer.send_tombstone("c1")
    with Consumer(broker, payment, group=group, tombstones=True) as consumer:
        record = next(iter(consumer))
    assert (record.event, record.key) == (None, b"c1")


def bare(broker: Broker, payment: Any, *records: dict[str, Any]) -> None:
    client = BareProducer(broker.config())
    for record in records:
        client.produce(topic_of(payment), **record)
    client.flush()


def test_b1_what_cannot_be_read_goes_to_dead_letters_and_reading_goes_on(
    broker: Broker, payment: Any, group: str
) -> None:
    good = b'{"payment_id":"x","card_id":"c","amount":"1.00","at":"2026-11-03T15:00:00Z"}'
    bare(
        broker,
        payment,
        {"key": b"k", "value": b"\xffnot json", "headers": [("trace", b"7")]},
        {"key": b"k", "value": b'{"payment_id":"x"}'},
        {"value": good},
        {"key": b"k", "value": good.replace(b"1.00", b"NaN")},
        {"key": b"k", "value": good, "headers": [("hr-type", b"Refund")]},
        {"key": b"k", "value": None},
    )
    send(broker, payment, payments(payment, 1, first=20))
    with Consumer(broker, payment, group=group, app="bank") as consumer:
        assert ids(islice(consumer, 21)) == named(0, 21)
        assert consumer.dead == 6
    letters = {letter.offset: letter for letter in dead.letters(broker, topic_of(payment))}
    assert [letters[offset].reason for offset in range(20, 26)] == [
        "undecodable", "missing-field", "missing-field", "wrong-type", "wrong-type", "undecodable",
    ]  # fmt: skip
    first = letters[20]
    assert first.id == f"bank/{topic_of(payment)}/0/20"
    assert (first.key, first.value, first.headers) == (b"k", b"\xffnot json", (("trace", b"7"),))
    assert "no key" in letters[22].error
    assert [lag.records for lag in groups.lag(broker, group)] == [0]  # and they are behind us


def test_what_an_app_wrote_is_named_for_its_topic_and_read_as_the_one_class_that_says_so(
    broker: Broker, payment: Any, group: str
) -> None:
    value = b'{"payment_id":"x","card_id":"c","amount":"1.00","at":"2026-11-03T15:00:00Z"}'
    bare(broker, payment, {"key": b"c", "value": value, "headers": [("hr-type", topic_of(payment).encode())]})
    with Consumer(broker, payment, group=group) as consumer:
        assert ids(islice(consumer, 21)) == [*named(0, 20), "x"]


def test_b1_a_value_as_large_as_a_record_can_be_is_kept(broker: Broker, payment: Any, group: str) -> None:
    bare(broker, payment, {"key": b"k", "value": b"x" * 999_000})
    send(broker, payment, payments(payment, 1, first=20))
    with Consumer(broker, payment, group=group, deliver="at-most-once") as consumer:
        assert ids(islice(consumer, 21)) == named(0, 21)
    assert [len(letter.value or b"") for letter in dead.letters(broker, topic_of(payment))] == [999_000]


def test_bad_questions_are_refused(broker: Broker, payment: Any, group: str) -> None:
    with pytest.raises(UsageError, match="exactly-once"):
        Consumer(broker, payment, group=group, deliver="exactly-once")
    with pytest.raises(TopicMissing):
        Consumer(broker, payment_on("nobody-made-this"), group=group)

    @event
    class Plain:
        a: int

    with pytest.raises(BadEvent, match="has no topic"):
        Consumer(broker, Plain, group=group)
    with Consumer(broker, payment, group=group) as consumer, pytest.raises(UsageError):
        consumer.seek(-5)
