"""Dead letters: records that cannot be read, kept byte for byte beside their topic, shown and retried (rule B1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from confluent_kafka import KafkaError, Message

from headrace.base.clock import from_micros
from headrace.base.errors import DataError, UsageError
from headrace.log import topics
from headrace.log.broker import Broker
from headrace.log.offsets import record_time
from headrace.log.read import read
from headrace.model.topic import Topic

MARK = "hr-dead-"
"""Headers that tell of the death start with this; the record's own headers stay beside them."""
ROOMY = 20 << 20
"""Bytes: a record of the greatest usual size must fit together with its story."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A record that could not be read: where it stood, why it failed, and its bytes."""

    app: str
    topic: str
    partition: int
    offset: int
    reason: str
    error: str
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    time: datetime

    @property
    def id(self) -> str:
        """How it is named at the shell, and its record key."""
        return f"{self.app}/{self.topic}/{self.partition}/{self.offset}"


def dead_topic(topic: str) -> str:
    return f"{topic}.dead"


def grave_of(topic: str) -> Topic:
    """Compacted: a record that is read again, and fails again, is one dead letter."""
    return Topic(name=dead_topic(topic), compact=True)


def ensure(broker: Broker, *names: str) -> list[str]:
    """Makes the dead-letter topics of these topics where they are missing. Returns the names it made."""
    return topics.ensure(broker, *map(grave_of, names), extra={"max.message.bytes": str(ROOMY)})


def retry_topic(app: str, topic: str) -> str:
    """Read by this app only, so that a retry reaches nobody who had no trouble."""
    return f"{app}.{topic}.retry"


class Graveyard:
    """Writes dead letters for one app. Their topics are made on the first death."""

    def __init__(self, broker: Broker, app: str) -> None:
        self._broker = broker
        self._app = app
        self._made: set[str] = set()
        self._client: Any = None
        self._failure: KafkaError | None = None
        self.count = 0

    def bury(self, message: Message, topic: str, broken: DataError) -> None:
        """Keeps the record's bytes; `topic` is where it belongs (a retry's home is the topic it came from)."""
        if self._client is None:
            self._client = self._broker.producer(
                {
                    "partitioner": "murmur2_random",
                    "enable.idempotence": True,
                    "message.max.bytes": ROOMY,
                    "on_delivery": self._delivered,
                }
            )
        grave = dead_topic(topic)
        if grave not in self._made:
            ensure(self._broker, topic)
            self._made.add(grave)
        origin = {
            "app": self._app,
            "topic": message.topic(),
            "partition": message.partition(),
            "offset": message.offset(),
            "reason": broken.code,
            "error": broken.what if not broken.why else f"{broken.what}: {broken.why}",
        }
        headers = [(f"{MARK}{name}", str(value).encode()) for name, value in origin.items()]
        if message.key() is not None:
            headers.append((f"{MARK}key", message.key()))
        place = f"{self._app}/{message.topic()}/{message.partition()}/{message.offset()}"
        kept = [*(message.headers() or ()), *headers]
        time = message.timestamp()[1]
        try:
            self._client.produce(grave, message.value(), place.encode(), timestamp=time, headers=kept)
        except BufferError:  # the local queue is full
            self.flush()
            self._client.produce(grave, message.value(), place.encode(), timestamp=time, headers=kept)
        self.count += 1

    def flush(self) -> None:
        """After this the dead letters are safe, and the offsets behind them may be committed."""
        if self._client is None:
            return
        while self._client.flush(1.0):
            pass
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise self._broker.undelivered(failure, "dead letters", 1)

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        self._failure = error or self._failure


def letters(broker: Broker, topic: str) -> Iterator[DeadLetter]:
    """The dead letters of a topic, each once, in the order of their times."""
    grave = dead_topic(topic)
    if grave in topics.widths(broker):
        yield from {letter.id: letter for letter in map(_letter, read(broker, grave))}.values()


def show(broker: Broker, topic: str, id: str) -> DeadLetter:
    """One dead letter by its id."""
    for letter in letters(broker, topic):
        if letter.id == id:
            return letter
    raise UsageError(f"topic {topic!r} has no dead letter {id!r}", fix=f"`headrace dead list {topic}` lists them")


def retry(broker: Broker, chosen: Iterable[DeadLetter]) -> int:
    """Sends dead letters, as they first were, to their app's retry topic. Returns how many."""
    wanted = list(chosen)
    homes = {letter.id: retry_topic(letter.app, _home(letter)) for letter in wanted}
    topics.ensure(broker, *(Topic(name=name) for name in sorted(set(homes.values()))))
    failed: list[KafkaError] = []
    client = broker.producer(
        {
            "partitioner": "murmur2_random",
            "enable.idempotence": True,
            "on_delivery": lambda error, _: failed.append(error) if error else None,
        }
    )
    for letter in wanted:
        time = record_time(letter.time)
        client.produce(homes[letter.id], letter.value, letter.key, timestamp=time, headers=list(letter.headers))
    while client.flush(1.0):
        pass
    if failed:
        raise broker.undelivered(failed[0], "retry", len(failed))
    return len(wanted)


def _home(letter: DeadLetter) -> str:
    """The topic a letter belongs to, also if it died again on its retry."""
    return letter.topic.removeprefix(f"{letter.app}.").removesuffix(".retry") if _retried(letter) else letter.topic


def _retried(letter: DeadLetter) -> bool:
    return letter.topic.startswith(f"{letter.app}.") and letter.topic.endswith(".retry")


def _letter(message: Message) -> DeadLetter:
    headers = message.headers() or []
    origin = {name.removeprefix(MARK): value for name, value in headers if name.startswith(MARK)}
    text = {name: value.decode(errors="replace") for name, value in origin.items() if name != "key"}
    return DeadLetter(
        app=text["app"],
        topic=text["topic"],
        partition=int(text["partition"]),
        offset=int(text["offset"]),
        reason=text["reason"],
        error=text["error"],
        key=origin.get("key"),
        value=message.value(),
        headers=tuple((name, value) for name, value in headers if not name.startswith(MARK)),
        time=from_micros(message.timestamp()[1] * 1000),
    )
