"""Topics: made with our defaults, described, and never widened by accident."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from headrace.base.errors import PartitionMismatch, TopicMissing
from headrace.base.ids import random_id
from headrace.base.money import money
from headrace.log import topics
from headrace.log.broker import Broker
from headrace.log.read import read
from headrace.model.topic import Topic
from tests.log.paying import Declare, payments, send, topic_of


@pytest.fixture
def name() -> str:
    return f"t-{random_id()[:12]}"


def test_f3_topics_keep_records_for_ever_and_accept_any_time(broker: Broker, name: str) -> None:
    assert topics.ensure(broker, Topic(name=name)) == [name]
    found = topics.describe(broker, name)
    assert (found.retention, found.compact, found.any_time) == (None, False, True)
    assert (found.partitions, found.replication, found.records) == (broker.partitions, 1, 0)


def test_f3_a_record_of_the_far_future_and_one_before_1970_are_kept(broker: Broker, declare: Declare) -> None:
    payment = declare()
    far, old = datetime(2200, 1, 1, tzinfo=UTC), datetime(1960, 1, 1, tzinfo=UTC)
    send(broker, payment, [payment("p1", "c1", money(1), far), payment("p2", "c1", money(1), old)])
    times = [message.timestamp()[1] for message in read(broker, topic_of(payment))]
    assert sorted(times) == [1, 7258118400000]


def test_a_declared_retention_is_set(broker: Broker, name: str) -> None:
    topics.ensure(broker, Topic(name=name, partitions=3, retention=timedelta(days=7)))
    assert topics.describe(broker, name).retention == timedelta(days=7)


def test_a_compacted_topic_is_one(broker: Broker, name: str) -> None:
    topics.ensure(broker, Topic(name=name, compact=True))
    found = topics.describe(broker, name)
    assert (found.compact, found.retention) == (True, None)


def test_ensure_twice_is_harmless_and_another_width_is_refused(broker: Broker, name: str) -> None:
    topics.ensure(broker, Topic(name=name, partitions=3))
    assert topics.ensure(broker, Topic(name=name, partitions=3), Topic(name=name)) == []
    with pytest.raises(PartitionMismatch) as refused:
        topics.ensure(broker, Topic(name=name, partitions=6))
    assert refused.value.what == f"topic {name!r} has 3 partitions, declared are 6"
    assert "partitions=3" in refused.value.fix


def test_a_missing_topic_names_the_near_ones(broker: Broker, name: str) -> None:
    topics.ensure(broker, Topic(name=name))
    with pytest.raises(TopicMissing) as refused:
        topics.describe(broker, name[:-1])
    assert refused.value.fix == f"did you mean {name!r}?"
    assert broker.bootstrap in refused.value.what


def test_the_list_shows_sizes_and_leaves_out_the_brokers_own(broker: Broker, declare: Declare) -> None:
    payment = declare(partitions=2)
    send(broker, payment, payments(payment, 30))
    listed = {found.name: found for found in topics.listing(broker)}
    assert (listed[topic_of(payment)].records, listed[topic_of(payment)].partitions) == (30, 2)
    assert not [one for one in listed if one.startswith("__")]


def test_a_deleted_topic_is_gone(broker: Broker, name: str) -> None:
    topics.ensure(broker, Topic(name=name))
    topics.delete(broker, name)
    with pytest.raises(TopicMissing):
        topics.width(broker, name)
    with pytest.raises(TopicMissing):
        topics.delete(broker, name)
