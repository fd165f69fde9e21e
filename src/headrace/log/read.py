"""Reading a stretch of a topic: from the last n, an offset or a time, to the end or on, partitions merged by time."""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from headrace.base.errors import UsageError
from headrace.base.ids import random_id
from headrace.log import topics
from headrace.log.broker import Broker
from headrace.log.offsets import Place, at_time, beginnings, ends

_BATCH = 1_000
_AHEAD = 10_000
"""A partition this far ahead of the merge is paused until the others catch up."""


@dataclass(frozen=True, slots=True)
class Last:
    """The last n records of a topic."""

    n: int

    def __post_init__(self) -> None:
        if self.n < 1:
            raise UsageError(f"the last {self.n} records are none", fix="ask for 1 or more")


@dataclass(frozen=True, slots=True)
class Offset:
    """From this offset in every partition."""

    offset: int

    def __post_init__(self) -> None:
        if self.offset < 0:
            raise UsageError(f"there is no offset {self.offset}", fix="offsets start at 0; Last(n) counts from the end")


Start = Last | Offset | datetime | None
"""None: from the beginning."""


def read(broker: Broker, topic: str, start: Start = None, *, follow: bool = False) -> Iterator[Message]:
    """Records in the order of their times (each partition's own order kept), up to the end seen now, then on if told.

    A record comes out when every partition that has more has shown its next; `follow` goes on as they arrive.
    """
    places = topics.places(topic, topics.width(broker, topic))
    first, last = beginnings(broker, places), ends(broker, places)
    begin = _begin(broker, start, places, first, last)
    client = broker.consumer(
        {
            "group.id": f"headrace-read-{random_id()}",  # the client wants a name; nothing is ever committed to it
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 500 if follow else 10,  # the end is said when a fetch found nothing
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    try:
        if isinstance(start, Last):
            yield from _last(client, broker, topic, first, last, start.n)
        else:
            yield from _stretch(client, broker, topic, begin, last)
        if follow:
            client.resume([TopicPartition(*place) for place in places])  # a pause outlives an assignment
            client.assign([TopicPartition(*place, last[place]) for place in places])
        while follow:
            yield from sorted(_arrived(client, broker, topic), key=_order)
    finally:
        client.close()


def _begin(
    broker: Broker, start: Start, places: list[Place], first: dict[Place, int], last: dict[Place, int]
) -> dict[Place, int]:
    if isinstance(start, Offset):
        return {place: min(max(first[place], start.offset), last[place]) for place in places}
    if isinstance(start, datetime):
        return at_time(broker, places, start)
    return first


def _stretch(
    client: Any, broker: Broker, topic: str, begin: dict[Place, int], last: dict[Place, int]
) -> Iterator[Message]:
    client.assign([TopicPartition(*place, at) for place, at in begin.items()])
    client.resume([TopicPartition(*place) for place in begin])  # a pause outlives an assignment
    return _merged(client, broker, topic, {place: last[place] for place, at in begin.items() if at < last[place]})


def _last(
    client: Any, broker: Broker, topic: str, first: dict[Place, int], last: dict[Place, int], n: int
) -> list[Message]:
    """The ends of transactions have offsets too, and so has what was aborted or compacted away: a partition that shows
    fewer than n records is read from further back."""
    begin = {place: max(first[place], end - n) for place, end in last.items()}
    while True:
        found = list(_stretch(client, broker, topic, begin, last))
        shown = Counter((message.topic(), message.partition()) for message in found)
        short = {place for place, at in begin.items() if shown[place] < n and at > first[place]}
        if not short:
            return found[-n:]
        begin |= {place: max(first[place], last[place] - 4 * (last[place] - begin[place])) for place in short}


def _merged(client: Any, broker: Broker, topic: str, until: dict[Place, int]) -> Iterator[Message]:
    """A k-way merge: the earliest head is given out once every unfinished partition has a head."""
    waiting: dict[Place, deque[Message]] = {place: deque() for place in until}
    unfinished = set(until)
    paused: set[Place] = set()
    heads: list[tuple[tuple[int, int, int], Place]] = []

    while unfinished or heads:
        for message in client.consume(_BATCH, 0.02) if unfinished else ():
            place = (message.topic(), message.partition())
            if place not in unfinished:
                continue  # came after the end seen at the start: left to `follow`, which begins there
            if message.error() is not None:
                _check(message, broker, topic)
                unfinished.discard(place)  # the end of the partition
                continue
            if message.offset() < until[place]:
                waiting[place].append(message)
                if len(waiting[place]) == 1:
                    heapq.heappush(heads, (_order(message), place))
            if message.offset() >= until[place] - 1:
                unfinished.discard(place)
                client.pause([TopicPartition(*place)])
        ready = {place for _, place in heads}
        while heads and unfinished <= ready:
            _, place = heapq.heappop(heads)
            yield waiting[place].popleft()
            if waiting[place]:
                heapq.heappush(heads, (_order(waiting[place][0]), place))
            else:
                ready.discard(place)
        far = {place for place in unfinished if len(waiting[place]) > _AHEAD}
        if far - paused:
            client.pause([TopicPartition(*place) for place in far - paused])
        if paused - far:
            client.resume([TopicPartition(*place) for place in paused - far])
        paused = far


def _arrived(client: Any, broker: Broker, topic: str) -> list[Message]:
    """What came since the last look."""
    found = client.consume(_BATCH, 0.1)
    return [message for message in found if message.error() is None or not _check(message, broker, topic)]


def _order(message: Message) -> tuple[int, int, int]:
    return message.timestamp()[1], message.partition(), message.offset()


def _check(message: Message, broker: Broker, topic: str) -> bool:
    """True at the end of a partition; any other error is raised."""
    if message.error().code() != KafkaError._PARTITION_EOF:
        raise broker.explain(KafkaException(message.error()), topic=topic)
    return True
