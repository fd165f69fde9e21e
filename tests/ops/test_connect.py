"""hr.connect: producers, consumers and tables of an app over the real broker, closed when the block ends."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

import headrace as hr
from headrace.base.errors import PartitionMismatch, StackDown, TopicMissing
from headrace.base.settings import Settings, load
from headrace.log import topics
from headrace.log.broker import Broker
from headrace.log.read import read
from headrace.log.record import is_mark
from headrace.model.topic import Topic
from headrace.stack import stack as embedded
from tests.features.keeping import fill

NOON = datetime(2026, 11, 3, 12, tzinfo=UTC)


def payment_on(topic: str) -> Any:
    @hr.event(topic=topic, key="card_id", time="at", id="payment_id")
    class Payment:
        payment_id: str
        card_id: str
        amount: hr.Money
        at: datetime

    return Payment


def customer_on(topic: str) -> Any:
    @hr.event(topic=topic, key="customer_id", time="since")
    class Customer:
        customer_id: str
        name: str
        since: datetime

    return Customer


def test_all_that_is_there_is_read_as_no_member_of_a_group_and_what_is_no_event_is_passed_over(
    settings: Settings, broker: Broker, topic: str
) -> None:
    payment, app = payment_on(topic), hr.App("shop")
    app.stream(payment, disorder="30 s")
    sent = [payment(f"p{n}", "c1", hr.money(n), NOON + timedelta(seconds=n)) for n in range(3)]
    with hr.connect(app, settings) as c:
        assert list(c.read(payment)) == []
        c.send(*sent)
        client = broker.producer({})
        client.produce(topic, b"no payment", b"c1")
        assert client.flush(30) == 0
        assert [(record.event, record.offset) for record in c.read(payment)] == list(zip(sent, range(3), strict=True))


def test_an_app_sends_and_reads_its_events(settings: Settings, broker: Broker, topic: str) -> None:
    payment = payment_on(topic)
    app = hr.App("shop")
    app.stream(payment, disorder="30 s")
    sent = [payment(f"p{n}", "c1", hr.money(n), NOON + timedelta(seconds=n)) for n in range(5)]

    with hr.connect(app, settings) as c:  # the topic is made here
        c.send(sent[0])
        with c.producer(payment, linger="1 ms") as producer:
            producer.send_many(sent[1:])
        with c.consumer(payment, group=f"g-{topic}") as reader:
            read = []
            for record in reader.records(idle="20 s"):
                read.append(record.event)
                if len(read) == 5:
                    break
    assert read == sent


def test_two_groups_each_read_everything(settings: Settings, broker: Broker, topic: str) -> None:
    payment = payment_on(topic)
    app = hr.App("shop")
    app.stream(payment, disorder="30 s")
    with hr.connect(app, settings) as c:
        c.send(*(payment(f"p{n}", f"c{n}", hr.money(1), NOON) for n in range(10)))
        for group in (f"a-{topic}", f"b-{topic}"):
            found = set()
            for record in c.consumer(payment, group=group).records(idle="20 s"):
                found.add(record.event.payment_id)
                if len(found) == 10:
                    break
            assert len(found) == 10


def test_a_declared_table_holds_the_latest_value_per_key(settings: Settings, broker: Broker, topic: str) -> None:
    customer = customer_on(topic)
    app = hr.App("shop")
    customers = app.table(customer)
    with hr.connect(app, settings) as c:
        c.send(customer("u1", "Ann", NOON), customer("u2", "Bob", NOON), customer("u1", "Anna", NOON))
        with c.producer(customer) as producer:
            producer.send_tombstone("u2")
        for source in (customers, customer):  # as declared, or by its class
            table = c.table(source)
            assert table.get("u1") == customer("u1", "Anna", NOON)
            assert table.get("u2") is None
            assert table.snapshot() == {"u1": customer("u1", "Anna", NOON)}
    assert topics.describe(broker, topic).compact


def test_connecting_makes_the_declared_topics_and_keeps_their_width(
    settings: Settings, broker: Broker, topic: str
) -> None:
    app = hr.App("shop")
    app.topic(topic, partitions=3)
    with hr.connect(app, settings):
        assert topics.describe(broker, topic).partitions == 3
    other = hr.App("shop")
    other.topic(topic, partitions=5)
    with pytest.raises(PartitionMismatch, match="3 partitions, declared are 5"):
        hr.connect(other, settings)


def test_an_event_the_app_does_not_declare_needs_its_topic_to_exist(
    settings: Settings, broker: Broker, topic: str
) -> None:
    payment = payment_on(topic)
    with hr.connect(hr.App("shop"), settings) as c:
        with pytest.raises(TopicMissing):
            c.producer(payment)
        topics.ensure(broker, Topic(name=topic, partitions=1))
        c.send(payment("p1", "c1", hr.money(1), NOON))


def test_a_block_that_fails_commits_nothing_it_had_not_finished(settings: Settings, broker: Broker, topic: str) -> None:
    payment = payment_on(topic)
    app = hr.App("shop")
    app.stream(payment, disorder="30 s")

    def first(c: Any) -> Any:
        return next(iter(c.consumer(payment, group=f"g-{topic}").records(idle="20 s"))).event.payment_id

    def fail_after_the_first() -> None:
        with hr.connect(app, settings) as c:
            assert first(c) == "p1"
            raise ZeroDivisionError

    with hr.connect(app, settings) as c:
        c.send(payment("p1", "c1", hr.money(1), NOON), payment("p2", "c1", hr.money(2), NOON))
    with pytest.raises(ZeroDivisionError):
        fail_after_the_first()
    with hr.connect(app, settings) as c:
        assert first(c) == "p1"  # at least once: it was not finished, so it is read again


def test_a_program_asks_the_lake(settings: Settings, broker: Broker, topic: str) -> None:
    table = f"asked_{topic.replace('-', '_')}"
    write_deltalake(str(settings.lake / table), pa.table({"n": [1, 2]}))
    with hr.connect(hr.App("shop"), settings) as c:
        assert c.query(f"select sum(n) as n from lake.{table}") == [{"n": 3}]


def test_a_program_asks_for_features_and_foretells_a_stream(
    settings: Settings, broker: Broker, topic: str, tmp_path: Path
) -> None:
    redis = embedded.up(settings.home, settings.cache, parts=("redis",), foreground=True).redis
    payment, app = payment_on(topic), hr.App("shop")
    card = app.features("card", key="card_id", source=app.stream(payment, disorder="30 s"), ttl="30 d")
    card = card.over("1 h", spent=hr.sum("amount"), times=hr.count()).to(hr.redis(f"{topic}:{{card_id}}"))
    customer = customer_on(f"{topic}-customers")
    customers = app.table(customer, name="customers").to(hr.redis(f"{topic}-of:{{customer_id}}"))
    named = card.vectors.enrich(customers, on="card_id = customer_id", take="card.*, customers.name")
    known = named.where("amount > 0").select("payment_id, spent_1h / times_1h as mean, name")
    known.to(app.topic(f"{topic}-out"), key="payment_id")
    sent = [payment(f"p{n}", "c1", hr.money(n), NOON + timedelta(minutes=n)) for n in range(1, 4)]
    with hr.testing.run(app) as t:
        t.send(*sent[:2], customer("c1", "Ann", NOON))
        fill(app, t, redis, tmp_path / "lake")
    with hr.connect(app, settings) as c:
        for asked in (card, "card"):
            assert c.features(asked).get(card_id="c1", at=sent[1].at) == {"spent_1h": hr.money(3), "times_1h": 2}
        ahead = c.ahead(known, card, customers)
        assert ahead(sent[2]) == {"payment_id": "p3", "mean": Decimal(2), "name": "Ann"}
        assert ahead(payment("p4", "c1", hr.money(0), NOON)) is None
        assert c.ahead(known, card)(sent[2]) == {"payment_id": "p3", "mean": Decimal(2), "name": None}
        with pytest.raises(hr.HeadraceError, match="is not read online"):
            c.ahead(known, card, customers.select("customer_id, name"))
        with pytest.raises(hr.HeadraceError, match="others is not kept online") as refused:
            c.ahead(known, card, hr.App("other").table(payment_on(f"{topic}-others"), name="others"))
        assert refused.value.fix == '.to(hr.redis("others:{card_id}"))'
        with pytest.raises(hr.HeadraceError, match="not known ahead"):
            c.ahead(known.dedup("payment_id", within="1 h"), card)


def test_without_a_stack_the_error_says_how_to_start_one(tmp_path_factory: pytest.TempPathFactory) -> None:
    empty = tmp_path_factory.mktemp("empty")
    with pytest.raises(StackDown, match="no kafka is running") as refused:
        hr.connect(hr.App("shop"), load({"home": str(empty)}, root=empty, env={}))
    assert "headrace up" in refused.value.fix


def test_a_table_of_changes_is_not_for_programs(settings: Settings, broker: Broker, topic: str) -> None:
    app = hr.App("shop")
    customers = app.table(customer_on(topic), changes=True)
    with hr.connect(app, settings) as c, pytest.raises(hr.HeadraceError, match="is a topic of changes"):
        c.table(customers)


def test_t7_a_program_marks_what_it_has_sent(settings: Settings, broker: Broker, topic: str) -> None:
    app, payment = hr.App("shop"), payment_on(topic)
    app.stream(payment, disorder=hr.marked())
    with hr.connect(app, settings) as c:
        c.send(payment("p1", "c1", hr.money(1), NOON))
        c.mark(payment, NOON)
        c.mark(app.topic(topic), NOON, partition=0)
    assert sum(is_mark(message) for message in read(broker, topic)) == topics.width(broker, topic) + 1
