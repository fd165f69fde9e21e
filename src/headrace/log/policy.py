"""Policies in the log: each is a record of its topic, the whole of it in one, so that what decided is one offset."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from headrace.base.clock import EPOCH
from headrace.log.broker import PATIENCE, Broker
from headrace.log.follow import Follower
from headrace.log.read import read
from headrace.model.decided import LARGEST, policy_topic

_KEYS = {False: b"active", True: b"shadow"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A policy as it was published; without text it took away what stood."""

    policy: str
    offset: int
    at: datetime
    shadow: bool
    text: bytes | None

    @property
    def seen(self) -> str:
        """Its place, as decisions name it."""
        return seen(self.policy, self.offset)


def seen(policy: str, offset: int) -> str:
    return f"{policy_topic(policy).name}/0@{offset}"


def publish(broker: Broker, policy: str, text: str | None, *, shadow: bool) -> int:
    """Writes a policy, or with None takes away the one that stands; its offset."""
    topic, told = policy_topic(policy).name, []
    # The model is text, and shrinks to a fifth.
    client = broker.producer({"compression.type": "gzip", "message.max.bytes": LARGEST, "acks": "all"})
    value = None if text is None else text.encode()
    client.produce(topic, value, _KEYS[shadow], 0, on_delivery=lambda error, message: told.append((error, message)))
    client.flush(PATIENCE.total_seconds())
    if not told:
        client.purge()
        client.flush()
    error, message = told[0]
    if error is not None:
        raise broker.undelivered(error, topic, 1)
    return int(message.offset())


def history(broker: Broker, policy: str) -> list[Published]:
    """All that were published, the oldest first."""
    return _policies(policy, read(broker, policy_topic(policy).name))


class PolicyFollower:
    """The policies of a name, as they are published."""

    def __init__(self, broker: Broker, policy: str) -> None:
        self._policy = policy
        self._follower = Follower(broker, policy_topic(policy).name)

    def refresh(self) -> list[Published]:
        """Those up to the end that the topic has now."""
        return _policies(self._policy, self._follower.refresh())

    def wait(self, wait: timedelta) -> list[Published]:
        """Those that came since; waits that long for the first."""
        return _policies(self._policy, self._follower.wait(wait))

    def close(self) -> None:
        self._follower.close()


def _policies(policy: str, messages: Iterable[Any]) -> list[Published]:
    """What has another key is not a policy, whoever wrote it."""
    kinds = {key: shadow for shadow, key in _KEYS.items()}
    return [
        Published(
            policy=policy,
            offset=message.offset(),
            at=EPOCH + timedelta(milliseconds=message.timestamp()[1]),
            shadow=kinds[message.key()],
            text=message.value(),
        )
        for message in messages
        if message.key() in kinds
    ]
