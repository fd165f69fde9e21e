"""Dead letters for the shell: counted by topic, listed, shown whole, sent to be tried again."""

from __future__ import annotations

from headrace.log import dead, topics
from headrace.log.broker import Broker
from headrace.log.dead import DeadLetter


def counts(broker: Broker) -> list[tuple[str, int]]:
    """Topics that have dead letters, and how many."""
    end = dead.dead_topic("")
    return [(info.name.removesuffix(end), info.records) for info in topics.listing(broker) if info.name.endswith(end)]


def letters(broker: Broker, topic: str) -> list[DeadLetter]:
    """The dead letters of a topic, oldest first; the topic must exist."""
    topics.width(broker, topic)
    return list(dead.letters(broker, topic))


def letter(broker: Broker, topic: str, id: str) -> DeadLetter:
    topics.width(broker, topic)
    return dead.show(broker, topic, id)


def retry(broker: Broker, topic: str, id: str | None) -> list[DeadLetter]:
    """Sends one dead letter, or all of a topic, to the retry topics of their apps; returns those."""
    chosen = [letter(broker, topic, id)] if id else letters(broker, topic)
    dead.retry(broker, chosen)
    return chosen
