"""Offsets: where partitions begin and end, and which offset a moment has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Literal

from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import OffsetSpec

from headrace.base.clock import micros
from headrace.base.errors import UsageError
from headrace.log.broker import PATIENCE, Broker

Place = tuple[str, int]
"""A topic and one of its partitions."""

Goal = int | datetime | Literal["earliest", "latest"]
"""Where to go on reading."""

FIRST_TIME = 1

_WAIT = PATIENCE / timedelta(seconds=1)


def beginnings(broker: Broker, places: Iterable[Place]) -> dict[Place, int]:
    """The oldest offset still kept."""
    return _ask(broker, places, OffsetSpec.earliest())


def ends(broker: Broker, places: Iterable[Place], *, decided: bool = True) -> dict[Place, int]:
    """The offset after the last committed record; or after the last of all, those of open transactions too."""
    return _ask(broker, places, OffsetSpec.latest(), decided=decided)


def at_time(broker: Broker, places: Iterable[Place], moment: datetime) -> dict[Place, int]:
    """The first offset whose record time is not before the moment; the end where there is none."""
    asked = list(places)
    last = ends(broker, asked)  # first: what comes while we ask must not be passed over
    found = _ask(broker, asked, OffsetSpec.for_timestamp(record_time(moment)))
    return {place: last[place] if offset < 0 else offset for place, offset in found.items()}


def resolve(broker: Broker, places: Sequence[Place], to: Goal) -> dict[Place, int]:
    """The offset of a goal in each partition."""
    if isinstance(to, datetime):
        return at_time(broker, places, to)
    if to in ("earliest", "latest"):
        return beginnings(broker, places) if to == "earliest" else ends(broker, places)
    if isinstance(to, int) and to >= 0:
        return dict.fromkeys(places, to)
    raise UsageError(f"{to!r} is no place in a topic", why='it is "earliest", "latest", an offset or a time')


def record_time(moment: datetime) -> int:
    """Kafka's milliseconds for an event time (rule F3). Kafka has no time before 1970 and takes 0 for "now"."""
    return max(FIRST_TIME, micros(moment) // 1000)


def _ask(broker: Broker, places: Iterable[Place], spec: OffsetSpec, *, decided: bool = True) -> dict[Place, int]:
    asked = {TopicPartition(topic, partition): spec for topic, partition in places}
    if not asked:
        return {}
    level = IsolationLevel.READ_COMMITTED if decided else IsolationLevel.READ_UNCOMMITTED
    answers = broker.ask(
        lambda admin: admin.list_offsets(asked, isolation_level=level, request_timeout=_WAIT),
        topic=next(iter(asked)).topic,
    )
    return {(place.topic, place.partition): answer.offset for place, answer in answers.items()}
