"""A prompt producer: each record leaves at once, and its sender is told when it is safe. For a service that answers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from threading import Thread
from typing import Any

from confluent_kafka import KafkaException

from headrace.base.duration import duration
from headrace.base.errors import Overloaded
from headrace.log.broker import LOGGER, Broker
from headrace.log.codec import Encoded

_LOOK = 0.1  # seconds between two looks at whether to stop; reports come as soon as they are there


class PromptProducer:
    """Sends without waiting for more, and never gives up: while the broker is away records wait here, in order. Up to
    `queue` of them, then sending is refused, so that nobody believes to be recorded who is not."""

    def __init__(self, broker: Broker, *, queue: int = 50_000) -> None:
        self._client = broker.producer(
            {
                "partitioner": "murmur2_random",  # the same partition for a key as Java and Spark (rule F1)
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 0,
                "message.timeout.ms": 0,  # no end: the caller has already been told that it is on its way
                "queue.buffering.max.messages": queue,
                "reconnect.backoff.max.ms": 500,
            }
        )
        self._open = True
        self._thread = Thread(target=self._report, name="prompt-producer", daemon=True)
        self._thread.start()

    def send(
        self,
        topic: str,
        record: Encoded,
        safe: Callable[[], object] = lambda: None,
        lost: Callable[[str], object] = lambda _: None,
    ) -> None:
        """Sends a record; `safe` is called, in a thread of this producer, once the log has it, or `lost`, with the
        reason, if the broker refuses it for good."""
        key, value, headers, time = record

        def report(error: Any, _: Any) -> None:
            if error is None:
                safe()
            else:
                LOGGER.error("a record for %s was not written: %s", topic, error)
                lost(error.str())

        try:
            self._client.produce(topic, value, key, timestamp=time, headers=headers, on_delivery=report)
        except BufferError:
            raise Overloaded(
                "the broker is away, and too many records wait for it already",
                why=f"{len(self._client):,} are kept until it is back",
                fix="try again later",
            ) from None

    def answers(self, topic: str, *, within: str | timedelta) -> bool:
        """Whether the broker answers now, asked about a topic."""
        try:
            self._client.list_topics(topic, timeout=duration(within).total_seconds())
        except KafkaException:
            return False
        return True

    def close(self, *, within: str | timedelta = "10 s") -> int:
        """Waits until what was sent is safe. Returns how many records the log still does not have."""
        self._open = False
        self._thread.join()
        left = self._client.flush(duration(within).total_seconds())
        if left:
            self._client.purge()
            LOGGER.error("%d records were never written: the broker did not come back", left)
        return int(left)

    def _report(self) -> None:
        while self._open:
            self._client.poll(_LOOK)
