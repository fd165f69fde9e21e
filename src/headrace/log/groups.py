"""Consumer groups from outside: who is in them, how far behind they are, and moving them to another place."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from confluent_kafka import ConsumerGroupState, ConsumerGroupTopicPartitions, TopicPartition

from headrace.base.clock import from_micros
from headrace.base.errors import GroupActive, LogError
from headrace.base.ids import random_id
from headrace.log import topics
from headrace.log.broker import PATIENCE, Broker
from headrace.log.offsets import Goal, Place, beginnings, ends, resolve

_WAIT = PATIENCE / timedelta(seconds=1)
_LOOK = timedelta(seconds=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One reader in a group. `name` is its static name, empty for one that comes and goes."""

    id: str
    client: str
    host: str
    name: str
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A consumer group: stable, empty, balancing or dead."""

    name: str
    state: str
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """How far a group is behind in one partition. `seconds` is the age of the next record it has not read."""

    topic: str
    partition: int
    committed: int | None
    end: int
    records: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """What a seek does to one partition."""

    partition: int
    at: int
    to: int

    @property
    def again(self) -> int:
        """Records that will be read again."""
        return max(0, self.at - self.to)

    @property
    def skipped(self) -> int:
        """Records that will never be read by this group."""
        return max(0, self.to - self.at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seek:
    """A seek of a group in a topic, planned or done."""

    group: str
    topic: str
    moves: tuple[Move, ...]

    def __str__(self) -> str:
        again, skipped = sum(move.again for move in self.moves), sum(move.skipped for move in self.moves)
        return f"{self.group} in {self.topic}: {again:,} records are read again, {skipped:,} are skipped"


def listing(broker: Broker) -> list[Group]:
    """Every group, by name, with its members."""
    found = broker.ask(lambda admin: {"all": admin.list_consumer_groups(request_timeout=_WAIT)})["all"]
    return describe(broker, *sorted(one.group_id for one in found.valid))


def describe(broker: Broker, *names: str) -> list[Group]:
    """These groups; one that does not exist is dead and has no members."""
    if not names:
        return []
    found = broker.ask(lambda admin: admin.describe_consumer_groups(list(names), request_timeout=_WAIT))
    return [_group(name, found[name]) for name in names]


def lag(broker: Broker, group: str) -> list[Lag]:
    """How far the group is behind, per partition of every topic it has committed in or is assigned; where it has
    committed nothing, it is behind from the beginning."""
    committed = _committed(broker, group)
    assigned = {place for member in describe(broker, group)[0].members for place in member.places}
    present = topics.widths(broker)
    committed = {
        place: committed.get(place)
        for topic in {topic for topic, _ in (*committed, *assigned)} & present.keys()
        for place in topics.places(topic, present[topic])
    }
    first, last = beginnings(broker, committed), ends(broker, committed)
    begin = {place: max(first[place], offset or 0) for place, offset in committed.items()}
    behind = {place: begin[place] for place in committed if begin[place] < last[place]}
    ages = _ages(broker, behind)
    return [
        Lag(
            topic=place[0],
            partition=place[1],
            committed=offset,
            end=last[place],
            records=max(0, last[place] - begin[place]),
            seconds=ages.get(place, 0.0),
        )
        for place, offset in sorted(committed.items())
    ]


def seek(broker: Broker, group: str, topic: str, to: Goal, *, dry_run: bool = False) -> Seek:
    """Moves a group to the beginning, the end, an offset or a time of a topic; `dry_run` only says what that means."""
    places = topics.places(topic, topics.width(broker, topic))
    first, last = beginnings(broker, places), ends(broker, places)
    committed = _committed(broker, group)
    goals = {
        place: min(max(offset, first[place]), last[place]) for place, offset in resolve(broker, places, to).items()
    }
    moves = [
        Move(partition=place[1], at=max(committed.get(place) or 0, first[place]), to=goals[place]) for place in places
    ]
    planned = Seek(group=group, topic=topic, moves=tuple(moves))
    if not dry_run:
        _refuse_active(broker, group)
        offsets = [TopicPartition(*place, goals[place]) for place in places]
        request = [ConsumerGroupTopicPartitions(group, offsets)]
        try:
            broker.ask(lambda admin: admin.alter_consumer_group_offsets(request, request_timeout=_WAIT), topic=topic)
        except LogError:
            _refuse_active(broker, group)  # a member may have come in between
            raise
    return planned


def delete(broker: Broker, group: str) -> None:
    """Forgets a group and its offsets."""
    _refuse_active(broker, group)
    broker.ask(lambda admin: admin.delete_consumer_groups([group], request_timeout=_WAIT))


def _refuse_active(broker: Broker, group: str) -> None:
    members = describe(broker, group)[0].members
    if members:
        who = ", ".join(sorted({member.name or f"{member.client} at {member.host}" for member in members}))
        raise GroupActive(
            f"group {group!r} has {len(members)} active member{'s' if len(members) > 1 else ''}",
            why="a member that is reading would overwrite the new place with its own",
            fix=f"stop {who}, then try again",
        )


def _committed(broker: Broker, group: str) -> dict[Place, int | None]:
    request = [ConsumerGroupTopicPartitions(group)]
    found = broker.ask(lambda admin: admin.list_consumer_group_offsets(request, request_timeout=_WAIT))[group]
    return {(at.topic, at.partition): at.offset for at in found.topic_partitions if at.offset >= 0}


def _ages(broker: Broker, places: dict[Place, int]) -> dict[Place, float]:
    """The age in seconds of the record at each offset, read from the log itself."""
    if not places:
        return {}
    client = broker.consumer({"group.id": f"headrace-lag-{random_id()}", "enable.auto.commit": False})
    try:
        client.assign([TopicPartition(*place, offset) for place, offset in places.items()])
        ages: dict[Place, float] = {}
        deadline = time.monotonic() + _LOOK.total_seconds()
        while len(ages) < len(places) and time.monotonic() < deadline:
            message = client.poll(0.1)
            if message is not None and message.error() is None:
                at = (message.topic(), message.partition())
                age = datetime.now(UTC) - from_micros(message.timestamp()[1] * 1000)
                ages.setdefault(at, max(0.0, age.total_seconds()))
                client.pause([TopicPartition(*at)])
        return ages
    finally:
        client.close()


def _group(name: str, found: Any) -> Group:
    members = [
        Member(
            id=one.member_id,
            client=one.client_id,
            host=one.host.lstrip("/"),
            name=one.group_instance_id or "",
            places=tuple(sorted((at.topic, at.partition) for at in one.assignment.topic_partitions)),
        )
        for one in found.members
    ]
    return Group(name=name, state=_STATES.get(found.state, "unknown"), members=tuple(members))


_STATES = {
    ConsumerGroupState.STABLE: "stable",
    ConsumerGroupState.EMPTY: "empty",
    ConsumerGroupState.DEAD: "dead",
    ConsumerGroupState.PREPARING_REBALANCING: "balancing",
    ConsumerGroupState.COMPLETING_REBALANCING: "balancing",
}
