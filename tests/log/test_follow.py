"""Following a topic: each look gives what was committed since the last one, and whole transactions only."""

from __future__ import annotations

from headrace.log import topics
from headrace.log.broker import Broker
from headrace.log.follow import Follower
from headrace.model.topic import Topic


def news(follower: Follower) -> list[bytes]:
    return [message.value() for message in follower.refresh()]


def test_each_look_gives_what_is_new(broker: Broker, topic: str) -> None:
    topics.ensure(broker, Topic(name=topic, partitions=2))
    client = broker.producer({})
    follower = Follower(broker, topic)
    assert news(follower) == []
    for number in range(4):
        client.produce(topic, str(number), partition=number % 2)
    assert client.flush(20) == 0
    assert sorted(news(follower)) == [b"0", b"1", b"2", b"3"]
    assert news(follower) == []
    client.produce(topic, "4", partition=0)
    assert client.flush(20) == 0
    assert news(follower) == [b"4"]
    follower.close()


def test_a_transaction_is_seen_when_it_is_committed_and_not_if_it_never_is(broker: Broker, topic: str) -> None:
    topics.ensure(broker, Topic(name=topic, partitions=1))
    client = broker.producer({"transactional.id": topic})
    client.init_transactions(20)
    committed, all_of_it = Follower(broker, topic), Follower(broker, topic, isolation="read_uncommitted")

    client.begin_transaction()
    client.produce(topic, "given up")
    assert client.flush(20) == 0
    assert news(committed) == []
    client.abort_transaction(20)
    assert news(committed) == []

    client.begin_transaction()
    client.produce(topic, "kept")
    client.commit_transaction(20)
    assert news(committed) == [b"kept"]
    assert news(all_of_it) == [b"given up", b"kept"]
    committed.close()
    all_of_it.close()
