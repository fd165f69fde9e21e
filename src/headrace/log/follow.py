"""Following a topic: what was committed to it since the last look, in the order of its partitions."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from headrace.base.ids import random_id
from headrace.log import topics
from headrace.log.broker import Broker
from headrace.log.offsets import beginnings, ends


class Follower:
    """Reads a topic piece by piece, each time up to the end of what is committed. That end is never inside a
    transaction, so what was read up to it is whole batches."""

    def __init__(self, broker: Broker, topic: str, *, isolation: str = "read_committed") -> None:
        self._broker, self._topic = broker, topic
        self._places = topics.places(topic, topics.width(broker, topic))
        self._client = broker.consumer(
            {
                "group.id": f"headrace-follow-{random_id()}",  # the client wants a name; nothing is committed to it
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": isolation,
                "reconnect.backoff.max.ms": 500,
                "fetch.wait.max.ms": 100,
                "fetch.queue.backoff.ms": 10,
            }
        )
        self._found: list[Any] = []
        self._reached = beginnings(broker, self._places)
        self._client.assign([TopicPartition(*place, self._reached[place]) for place in self._places])

    def refresh(self) -> list[Any]:
        """The messages since the last time. Raises a LogError if the broker is silent; the next time gives all."""
        until = ends(self._broker, self._places)
        while any(self._reached[place] < until[place] for place in self._places):
            self._take(self._client.consume(10_000, 0.1))
        return self._taken()

    def wait(self, wait: timedelta) -> list[Any]:
        """The messages since the last time; if there are none, waits that long for one."""
        self._take(self._client.consume(1, wait.total_seconds()))
        return self._taken()

    def _take(self, messages: list[Any]) -> None:
        trouble = None
        for message in messages:
            if message.error() is None:
                self._found.append(message)
            elif message.error().code() != KafkaError._PARTITION_EOF:
                trouble = message.error()
                continue
            place = message.topic(), message.partition()
            self._reached[place] = message.offset() + (message.error() is None)
        if trouble is not None:  # only now: what came beside it would not come again
            raise self._broker.explain(KafkaException(trouble), topic=self._topic)

    def _taken(self) -> list[Any]:
        found, self._found = self._found, []
        return found

    def close(self) -> None:
        self._client.close()
