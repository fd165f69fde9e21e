"""The producer: typed events onto a topic, in order per key, and never silently lost."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Literal

from confluent_kafka import KafkaError, KafkaException, Message

from headrace.base.clock import micros, utc
from headrace.base.duration import millis
from headrace.base.errors import BadEvent, LogError, UsageError, WrongType
from headrace.base.where import here
from headrace.log import topics
from headrace.log.broker import Broker, too_large
from headrace.log.codec import MARK, Codec
from headrace.log.offsets import record_time
from headrace.model.event import event_type
from headrace.model.topic import Topic

Spread = Literal["key", "round-robin"]
Compression = Literal["none", "lz4", "zstd", "snappy", "gzip"]

_ANY_PARTITION = -1
_POLL_EVERY = 1_000
"""Sends between two looks at delivery errors."""
_SLICE = 0.01
"""Seconds of one wait in flush: where successes are not reported, the client sleeps to the end of it."""


class Producer:
    """Sends events of one class (or, to a `Topic` without one, of any) to a topic.

    Idempotent by default: retries neither double nor reorder. What could not be delivered is raised at the next
    `send` or `flush` and kept in `undelivered`. `spread="round-robin"` deals records evenly instead of by key.
    """

    def __init__(
        self,
        broker: Broker,
        what: type | Topic,
        *,
        spread: Spread = "key",
        acks: Literal["all", 1, 0] = "all",
        linger: str | timedelta = "5 ms",
        batch_bytes: int = 1_000_000,
        compression: Compression = "lz4",
        max_bytes: int = 1_000_000,
        queue: int = 100_000,
        give_up_after: str | timedelta = "2 min",
    ) -> None:
        cls, self.topic = _target(what)
        if spread not in ("key", "round-robin"):
            raise UsageError(f"spread={spread!r} is not known", why='it is "key" or "round-robin"')
        self._broker = broker
        self._width = topics.width(broker, self.topic)
        self._turn = 0 if spread == "round-robin" else _ANY_PARTITION
        self._codecs: dict[type, Codec[Any]] = {} if cls is None else {cls: Codec(cls)}
        self._open = cls is None
        self._until_poll = _POLL_EVERY
        self._failure: KafkaError | None = None
        self._failed = 0  # since it was last raised
        self.undelivered: list[Message] = []
        """Records that did not arrive, as the client gave them back (`.key()`, `.value()`, `.error()`)."""
        self._client = broker.producer(
            {
                "partitioner": "murmur2_random",  # the same partition for a key as Java and Spark (rule F1)
                "enable.idempotence": acks == "all",
                "acks": str(acks),
                "linger.ms": millis(linger),
                "batch.size": batch_bytes,
                "compression.type": compression,
                "message.max.bytes": max_bytes,
                "queue.buffering.max.messages": queue,
                "delivery.timeout.ms": millis(give_up_after),
                "delivery.report.only.error": True,  # a callback per success would cost half the throughput
                "on_delivery": self._not_delivered,
            }
        )

    def send(self, event: Any) -> None:
        """Queues one event; delivery is certain once `flush` returns."""
        self.send_many((event,))

    def send_many(self, events: Iterable[Any]) -> None:
        """Queues events in order."""
        codecs, produce = self._codecs, self._produce
        for event in events:
            codec = codecs.get(type(event)) or self._codec(event)
            key, value, headers, time = codec.encode(event)
            produce(key, value, headers, time)

    def send_tombstone(self, *key: Any, at: datetime | None = None) -> None:
        """Deletes a key from the table that reads this topic: `send_tombstone("u1")`."""
        if self._open or len(self._codecs) != 1:
            raise UsageError(
                "a tombstone needs a key of a known event", fix="make the producer for an event class, not a bare topic"
            )
        codec = next(iter(self._codecs.values()))
        self._produce(codec.key(*key), None, codec.headers, 0 if at is None else record_time(at))

    def mark(self, at: datetime, *, partition: int | None = None) -> None:
        """Promises that nothing older than `at` follows, in one partition or in all: streams that are declared with
        `disorder=hr.marked()` go by it (rule T7), all other readers pass it over."""
        if partition is not None and not 0 <= partition < self._width:
            raise UsageError(
                f"topic {self.topic!r} has no partition {partition}", why=f"it has {self._width}, counted from 0"
            )
        header = [(MARK, str(micros(utc(at))).encode())]
        for number in range(self._width) if partition is None else (partition,):
            self._produce(None, None, header, record_time(at), number)

    def flush(self) -> None:
        """Waits until every record is acknowledged; raises if any was not."""
        while self._client.flush(_SLICE):
            pass
        self._raise_failure()

    def close(self) -> None:
        self.flush()

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        try:
            self.flush()
        except LogError:
            if error is None:  # else the block's own error says more
                raise

    def _produce(self, key: bytes | None, value: bytes | None, headers: Any, time: int, at: int | None = None) -> None:
        partition = self._turn if at is None else at
        if at is None and partition >= 0:
            self._turn = (partition + 1) % self._width
        self._until_poll -= 1
        if self._until_poll <= 0 or self._failure is not None:
            self._until_poll = _POLL_EVERY
            self._client.poll(0)
            self._raise_failure()
        while True:
            try:
                self._client.produce(self.topic, value, key, partition, timestamp=time, headers=headers)
                return
            except BufferError:  # the local queue is full: backpressure, wait until the broker takes some
                self._client.poll(0.1)
                self._raise_failure()
            except KafkaException as refused:
                error = refused.args[0]
                if error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
                    raise too_large(self.topic, f"its value has {len(value or b''):,} bytes; {error.str()}") from None
                raise self._broker.explain(refused, topic=self.topic) from None

    def _codec(self, event: Any) -> Codec[Any]:
        if not self._open:
            (wanted,) = self._codecs
            raise WrongType(
                f"this producer sends {wanted.__name__}, not {type(event).__name__}",
                why=f"topic {self.topic!r} was opened for that class",
                fix="make a producer for the other class, or for a Topic without one",
                where=here(),
            )
        return self._codecs.setdefault(type(event), Codec(type(event)))

    def _not_delivered(self, error: KafkaError, message: Message) -> None:
        self._failure = error
        self._failed += 1
        self.undelivered.append(message)

    def _raise_failure(self) -> None:
        if self._failure is not None:
            failure, count = self._failure, self._failed
            self._failure, self._failed = None, 0
            raise self._broker.undelivered(failure, self.topic, count)


def _target(what: type | Topic) -> tuple[type | None, str]:
    if isinstance(what, Topic):
        return what.event, what.name
    described = event_type(what)
    if not described.topic:
        raise BadEvent(
            f"{described.name} has no topic",
            fix=f'@hr.event(topic="...") above {described.name}',
            where=described.where,
        )
    return what, described.topic
