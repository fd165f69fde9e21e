"""Topics on the broker: made with our defaults (rule F3), described, listed, deleted."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import ConfigResource, NewTopic

from headrace.base.duration import MILLISECOND
from headrace.base.errors import LogError, PartitionMismatch, TopicMissing
from headrace.log.broker import PATIENCE, Broker
from headrace.log.offsets import Place, beginnings, ends
from headrace.model.topic import Topic

ANY_TIME = str(2**63 - 1)
_WAIT = PATIENCE / timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicInfo:
    """A topic as it is. `records` counts offsets from first to last: compaction may have taken some in between, and the
    end of each transaction takes one."""

    name: str
    partitions: int
    replication: int
    records: int
    retention: timedelta | None
    compact: bool
    any_time: bool
    """Records dated in the future are kept, so that they can reach dead letters (rule F3)."""


def settings(topic: Topic) -> dict[str, str]:
    """The broker's settings for a declared topic: kept for ever unless said, any record time accepted (rule F3)."""
    policy = "compact" if topic.compact else "delete"
    if topic.compact and topic.retention is not None:
        policy = "compact,delete"
    largest = {} if topic.largest is None else {"max.message.bytes": str(topic.largest)}
    return largest | {
        "cleanup.policy": policy,
        "retention.ms": "-1" if topic.retention is None else str(topic.retention // MILLISECOND),
        "min.compaction.lag.ms": "0" if topic.lag is None else str(topic.lag // MILLISECOND),
        "message.timestamp.type": "CreateTime",
        "message.timestamp.before.max.ms": ANY_TIME,
        "message.timestamp.after.max.ms": ANY_TIME,
    }


def ensure(broker: Broker, *declared: Topic, extra: Mapping[str, str] | None = None) -> list[str]:
    """Makes the topics that are missing and checks the width of those that are there. Returns the names it made."""
    present = widths(broker)
    for topic in declared:
        _check_width(topic, present.get(topic.name))
    missing = [topic for topic in declared if topic.name not in present]
    wanted = [
        NewTopic(
            topic.name,
            num_partitions=topic.partitions or broker.partitions,
            replication_factor=topic.replication or -1,
            config=settings(topic) | dict(extra or {}),
        )
        for topic in missing
    ]
    if not wanted:
        return []
    admin = broker.admin()
    for name, answer in admin.create_topics(wanted, request_timeout=_WAIT).items():
        try:
            answer.result()
        except KafkaException as broken:
            if broken.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:  # someone was faster: as good
                raise broker.explain(broken, topic=name) from None
    made = [topic.name for topic in missing]
    _await(broker, lambda present: present.keys() >= set(made), f"{', '.join(made)} to be there")
    return made


def widths(broker: Broker) -> dict[str, int]:
    """Every topic that is not the broker's own, with its number of partitions."""
    return {name: len(found.partitions) for name, found in broker.catalogue().topics.items() if _ours(name)}


def width(broker: Broker, name: str) -> int:
    """The number of partitions of one topic, or an error that names the nearest ones."""
    present = widths(broker)
    if name in present:
        return present[name]
    near = get_close_matches(name, present, 3)
    raise TopicMissing(
        f"there is no topic {name!r} on {broker.bootstrap}",
        why=f"near it are {', '.join(near)}" if near else f"{len(present)} topics are there, none of a name like it",
        fix=f"did you mean {near[0]!r}?"
        if near
        else "`headrace topics` lists them; `headrace up` makes an app's topics",
    )


def identity(broker: Broker, name: str) -> str:
    """The broker's own id of a topic: one that is deleted and made again has another."""
    answers = broker.ask(lambda admin: admin.describe_topics(TopicCollection([name])), topic=name)
    return str(answers[name].topic_id)


def describe(broker: Broker, name: str) -> TopicInfo:
    """One topic in full."""
    width(broker, name)
    return _describe(broker, [name])[0]


def listing(broker: Broker) -> list[TopicInfo]:
    """All topics in full, by name."""
    return _describe(broker, sorted(widths(broker)))


def delete(broker: Broker, name: str) -> None:
    """Deletes a topic and every record in it."""
    width(broker, name)
    broker.ask(lambda admin: admin.delete_topics([name], request_timeout=_WAIT), topic=name)
    _await(broker, lambda present: name not in present, f"{name} to be gone")


def places(topic: str, count: int) -> list[Place]:
    return [(topic, partition) for partition in range(count)]


def _describe(broker: Broker, names: Iterable[str]) -> list[TopicInfo]:
    known = broker.catalogue().topics
    wanted = [name for name in names if name in known]
    everywhere = [place for name in wanted for place in places(name, len(known[name].partitions))]
    first, last = beginnings(broker, everywhere), ends(broker, everywhere)
    resources = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in wanted]
    answers = broker.ask(lambda admin: admin.describe_configs(resources, request_timeout=_WAIT)) if resources else {}
    configs = {resource.name: entries for resource, entries in answers.items()}
    found = []
    for name in wanted:
        partitions = known[name].partitions
        config = {key: entry.value for key, entry in configs[name].items()}
        kept = int(config["retention.ms"])
        found.append(
            TopicInfo(
                name=name,
                partitions=len(partitions),
                replication=len(partitions[0].replicas),
                records=sum(last[place] - first[place] for place in places(name, len(partitions))),
                retention=None if kept < 0 or config["cleanup.policy"] == "compact" else kept * MILLISECOND,
                compact="compact" in config["cleanup.policy"],
                any_time=int(config["message.timestamp.after.max.ms"]) == int(ANY_TIME),
            )
        )
    return found


def _await(broker: Broker, settled: Callable[[dict[str, int]], bool], what: str) -> None:
    """Waits until the broker's catalogue shows what it has agreed to: milliseconds later, as a rule."""
    deadline = time.monotonic() + _WAIT
    while not settled(widths(broker)):
        if time.monotonic() > deadline:
            raise LogError(
                f"waited in vain for {what}", why=f"the broker agreed to it {_WAIT:g} s ago", fix="try again"
            )


def _check_width(topic: Topic, present: int | None) -> None:
    if present is None or topic.partitions is None or topic.partitions == present:
        return
    raise PartitionMismatch(
        f"topic {topic.name!r} has {present} partitions, declared are {topic.partitions}",
        why="keys find their partition by the number of partitions; changing it breaks order per key",
        fix=f"declare partitions={present}, or delete the topic, or write to one of a new name",
    )


def _ours(name: str) -> bool:
    return not name.startswith("__")
