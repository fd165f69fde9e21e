"""Policies in the log: one record each, told in order, and as they come."""

from __future__ import annotations

from datetime import timedelta

import pytest

from headrace.base.errors import TopicMissing
from headrace.log import topics
from headrace.log.broker import Broker
from headrace.log.policy import PolicyFollower, history, publish, seen
from headrace.model.decided import policy_topic


def test_policies_are_told_in_order_and_as_they_come(broker: Broker, topic: str) -> None:
    topics.ensure(broker, policy_topic(topic))
    client = broker.producer({})
    client.produce(policy_topic(topic).name, b"not ours", b"other")
    assert client.flush(10) == 0
    first = publish(broker, topic, "one", shadow=False)

    follower = PolicyFollower(broker, topic)
    try:
        told = follower.refresh()
        second = publish(broker, topic, None, shadow=True)
        while not (came := follower.wait(timedelta(seconds=1))):
            pass
    finally:
        follower.close()

    assert (first, second) == (1, 2)
    assert [(one.seen, one.shadow, one.text) for one in told + came] == [
        (f"{topic}.policy/0@1", False, b"one"),
        (seen(topic, 2), True, None),
    ]
    assert history(broker, topic) == told + came
    assert topics.describe(broker, policy_topic(topic).name).retention is None


def test_a_topic_that_is_not_there_is_told(broker: Broker, topic: str) -> None:
    with pytest.raises(TopicMissing):
        PolicyFollower(broker, topic)
