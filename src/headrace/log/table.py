"""A table: the latest value per key of a compacted topic, rebuilt from its beginning, tombstones honoured."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta
from operator import attrgetter
from types import TracebackType
from typing import Any, Generic, NamedTuple, TypeVar

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from headrace.base.clock import micros
from headrace.base.duration import duration
from headrace.base.errors import BadEvent, DataError
from headrace.base.ids import random_id
from headrace.base.where import here
from headrace.log import topics
from headrace.log.broker import Broker
from headrace.log.codec import Codec
from headrace.log.dead import Graveyard
from headrace.log.offsets import beginnings, ends
from headrace.log.record import Decoder, is_mark
from headrace.model.event import event_type

E = TypeVar("E")

_BATCH = 10_000
_LOOK = 0.1


class Change(NamedTuple, Generic[E]):
    """What one record did to the table."""

    key: bytes
    before: E | None
    after: E | None


class Table(Generic[E]):
    """Holds the latest value per key, as of the end seen at the last `refresh` (the first is made at once).

    The value of the greatest event time wins, ties go to the later offset (rule J6); a tombstone counts by its
    record time. Events without a time follow the order of the log.
    """

    def __init__(self, broker: Broker, cls: type[E], *, app: str = "headrace") -> None:
        described = event_type(cls)
        if not described.key or not described.topic:
            raise BadEvent(
                f"{described.name} cannot be a table",
                why="a table is the latest value per key of a topic",
                fix='@hr.event(topic="...", key="...")',
                where=here(),
            )
        self._broker, self._topic = broker, described.topic
        self._places = topics.places(described.topic, topics.width(broker, described.topic))
        self._codec = Codec(cls)
        self._decode = Decoder([cls]).decode
        self._time = attrgetter(described.time) if described.time else None
        self._key_of = attrgetter(*described.key)
        self._rows: dict[bytes, E] = {}
        self._gone: dict[bytes, int] = {}  # deleted keys, and when: an older value that comes late stays deleted
        self._grave = Graveyard(broker, app)
        self._client = broker.consumer(
            {
                "group.id": f"headrace-table-{random_id()}",  # the client wants a name; nothing is ever committed to it
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": "read_committed",
                "queued.min.messages": 200_000,
                "fetch.queue.backoff.ms": 10,
                "fetch.wait.max.ms": 100,
            }
        )
        first = beginnings(broker, self._places)
        self._client.assign([TopicPartition(*place, first[place]) for place in self._places])
        self._reached = dict(first)
        self.refresh()

    @property
    def dead(self) -> int:
        """How many records could not be read and lie in `<topic>.dead`."""
        return self._grave.count

    def get(self, *key: Any) -> E | None:
        """The value of a key: `get("u1")`, or `get("de", 7)` where the key has two columns."""
        return self._rows.get(self._codec.key(*key))

    def snapshot(self) -> dict[Any, E]:
        """Every value by its key (a tuple where the key has several columns), as of the last refresh."""
        return {self._key_of(row): row for row in self._rows.values()}

    def __len__(self) -> int:
        return len(self._rows)

    def refresh(self) -> int:
        """Reads up to the end as it is now. Returns how many records that took."""
        until, count = ends(self._broker, self._places), 0
        while any(self._reached[place] < until[place] for place in self._places):
            for message in self._read():
                self._apply(message)
                count += 1
        self._grave.flush()
        return count

    def follow(self, *, idle: str | timedelta | None = None) -> Iterator[Change[E]]:
        """Changes as they come, for ever or until none has come for `idle`."""
        limit = None if idle is None else duration(idle).total_seconds()
        quiet_since = time.monotonic()
        while limit is None or time.monotonic() - quiet_since < limit:
            for message in self._read():
                quiet_since = time.monotonic()
                if (change := self._apply(message)) is not None:
                    yield change
            self._grave.flush()

    def close(self) -> None:
        self._client.close()

    def __enter__(self) -> Table[E]:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        self.close()

    def _read(self) -> list[Message]:
        """The next records, and how far that is: by the client's position, or by the end of a partition, since
        a transaction's marks take offsets but are no records."""
        found = []
        for message in self._client.consume(_BATCH, _LOOK):
            error = message.error()
            if error is None:
                found.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                self._reached[message.topic(), message.partition()] = message.offset()
            else:
                raise self._broker.explain(KafkaException(error), topic=self._topic)
        for at in self._client.position([TopicPartition(*place) for place in self._places]):
            self._reached[at.topic, at.partition] = max(self._reached[at.topic, at.partition], at.offset)
        return found

    def _apply(self, message: Message) -> Change[E] | None:
        """What the record changes; None if it is older than what is known, deletes nothing, or cannot be read."""
        if is_mark(message):
            return None
        try:
            row: E | None = self._decode(message, tombstones=True)
        except DataError as broken:
            self._grave.bury(message, self._topic, broken)
            return None
        key: bytes = message.key()
        before = self._rows.get(key)
        if row is None:
            return self._delete(key, before, message)
        if self._time is not None:
            if before is not None and self._time(row) < self._time(before):
                return None
            if key in self._gone:
                if micros(self._time(row)) // 1000 < self._gone[key]:
                    return None
                del self._gone[key]
        self._rows[key] = row
        return Change(key, before, row)

    def _delete(self, key: bytes, before: E | None, message: Message) -> Change[E] | None:
        when = message.timestamp()[1]
        if self._time is not None:
            if before is not None and micros(self._time(before)) // 1000 > when:
                return None
            self._gone[key] = max(when, self._gone.get(key, when))
        self._rows.pop(key, None)
        return None if before is None else Change(key, before, None)
