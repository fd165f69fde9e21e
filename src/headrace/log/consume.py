"""The consumer: typed events from topics, as a member of a group, with the delivery guarantee as one argument."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from types import TracebackType
from typing import Any, Generic, Literal, TypeVar

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from headrace.base.duration import duration, millis
from headrace.base.errors import BadEvent, DataError, LogError, UsageError
from headrace.log import topics
from headrace.log.broker import LOGGER, Broker
from headrace.log.dead import Graveyard, retry_topic
from headrace.log.offsets import Goal, Place, resolve
from headrace.log.record import Decoder, Record, is_mark
from headrace.model.event import event_type

E = TypeVar("E")

Deliver = Literal["at-least-once", "at-most-once"]
Moved = Callable[[list[Place]], None]
"""Told of partitions that were assigned, revoked or lost."""

_COMMIT_EVERY = 0.2
"""Seconds between two commits: what a crash may repeat, beside the batch at hand."""
_LOOK = 0.5
"""Seconds to wait for a first record before looking up again."""
_MOVED_ON = (
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.FENCED_INSTANCE_ID,
    KafkaError._ASSIGNMENT_LOST,
    KafkaError._NO_OFFSET,
)


class Consumer(Generic[E]):
    """Reads events of one or more classes as a member of a group.

    `deliver="at-least-once"` commits a record after the loop has asked for the next one: a crash re-reads.
    `deliver="at-most-once"` commits before the loop sees it: a crash skips. Up to `batch` records are at stake.
    `commit="manual"` leaves it to `commit()`. Records that cannot be read go to `<topic>.dead` and are counted in
    `dead`; reading goes on. With `app=`, the app's retry topics are read too.
    """

    def __init__(
        self,
        broker: Broker,
        events: type[E] | Sequence[type[E]],
        *,
        group: str,
        deliver: Deliver = "at-least-once",
        commit: Literal["auto", "manual"] = "auto",
        start: Literal["earliest", "latest"] = "earliest",
        member: str = "",
        app: str = "",
        batch: int = 500,
        buffer: int = 20_000,
        session: str | timedelta = "45 s",
        patience: str | timedelta = "5 min",
        tombstones: bool = False,
        on_assigned: Moved | None = None,
        on_revoked: Moved | None = None,
        on_lost: Moved | None = None,
    ) -> None:
        if deliver not in ("at-least-once", "at-most-once"):
            raise UsageError(
                f"deliver={deliver!r} is not known",
                why='a consumer delivers "at-least-once" or "at-most-once"',
                fix="exactly once is a property of reading and writing together: run it as an app",
            )
        classes = [events] if isinstance(events, type) else list(events)
        self._broker = broker
        self._homes = _homes(broker, classes, app)
        self._decoders = {
            topic: Decoder([cls for cls in classes if event_type(cls).topic == home])
            for topic, home in self._homes.items()
        }
        self._auto = commit == "auto"
        self._before = deliver == "at-most-once"
        self._size = batch
        self._tombstones = tombstones
        self._grave = Graveyard(broker, app or group)
        self._batch: list[Message] = []
        self._at = 0  # of the batch, this many were given out
        self._done = 0  # and this many are processed: the caller came back for more
        self._ends: dict[Place, int] = {}  # processed, not yet committed
        self._due = 0.0  # when to commit next
        self._joined = False
        self._taken: set[Place] = set()  # partitions that went to others during the last fetch
        self._told = {"assigned": on_assigned, "revoked": on_revoked, "lost": on_lost}
        self._client = broker.consumer(
            {
                "group.id": group,
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": start,
                "isolation.level": "read_committed",
                "partition.assignment.strategy": "cooperative-sticky",  # a rebalance stops only what moves
                "session.timeout.ms": millis(session),
                "heartbeat.interval.ms": min(millis(session) // 3, 1000),  # how soon a rebalance is noticed
                "max.poll.interval.ms": max(millis(patience), millis(session)),
                "queued.min.messages": buffer,  # backpressure: fetching stops when this much lies here unread
                "fetch.queue.backoff.ms": 10,  # and goes on soon after: the default, a second, would starve a fast loop
                "fetch.wait.max.ms": 100,
                **({"group.instance.id": member} if member else {}),
            }
        )
        self._client.subscribe(
            [topic if topic == home else _if_there(topic) for topic, home in self._homes.items()],
            on_assign=lambda _, moved: self._assigned(moved),
            on_revoke=lambda _, moved: self._revoked(moved),
            on_lost=lambda _, moved: self._lost(moved),
        )

    @property
    def dead(self) -> int:
        """How many records could not be read and lie in `<topic>.dead`."""
        return self._grave.count

    @property
    def assigned(self) -> list[Place]:
        """The partitions this member reads now."""
        return sorted((place.topic, place.partition) for place in self._client.assignment())

    def __iter__(self) -> Iterator[Record[E]]:
        return self.records()

    def records(self, *, idle: str | timedelta | None = None) -> Iterator[Record[E]]:
        """Records for ever, or until none has come for `idle` since the group was joined.

        A record counts as processed when the loop asks for the next one, so the one at which a loop breaks is
        read again by the next member, unless `commit()` was called.
        """
        limit = None if idle is None else duration(idle).total_seconds()
        quiet_since = time.monotonic()
        while True:
            while (record := self._next()) is not None:
                yield record
                self._done = self._at
                if self._auto and time.monotonic() > self._due:
                    self._commit_processed(wait=False)
            left = _LOOK if limit is None else quiet_since + limit - time.monotonic()
            if self._fetch(self._size, max(0.0, min(left, _LOOK))) or not self._joined:
                quiet_since = time.monotonic()
            elif left <= 0:
                return

    def consume(self, num: int = 500, *, timeout: str | timedelta = "1 s") -> list[Record[E]]:
        """Up to `num` records, as many as lie ready; waits for the first up to `timeout`. Asking for the next batch
        says that this one is processed."""
        self._done = self._at
        if self._at == len(self._batch):
            self._fetch(num, duration(timeout).total_seconds())
        found: list[Record[E]] = []
        while len(found) < num and (record := self._next()) is not None:
            found.append(record)
        return found

    def commit(self, record: Record[E] | None = None) -> None:
        """Commits up to and including `record`, or everything given out so far, and waits until it is done."""
        if record is None:
            self._done = self._at
            self._commit_processed(wait=True)
        else:
            self._send({(record.topic, record.partition): record.offset + 1}, wait=True)

    def seek(
        self,
        to: Goal,
        *,
        places: Sequence[Place] = (),
        within: str | timedelta = "30 s",
    ) -> None:
        """Goes on reading from an offset, a time, the beginning or the end, in all assigned partitions or in some."""
        deadline = time.monotonic() + duration(within).total_seconds()
        while not self._client.assignment():
            if time.monotonic() > deadline:
                raise LogError("no partition is assigned yet", why="the group is still balancing, or has more members "
                               "than there are partitions", fix="wait longer")  # fmt: skip
            self._fetch(self._size, 0.1)
        chosen = list(places) or self.assigned
        self._done = self._at
        self._collect()
        goals = _firsts(self._batch) | resolve(self._broker, chosen, to)  # others go on where they were
        self._batch, self._at = [], 0
        for place, offset in goals.items():
            self._ends.pop(place, None)
            self._call(self._client.seek, TopicPartition(*place, offset))

    def pause(self, places: Sequence[Place] = ()) -> None:
        """Stops fetching from the assigned partitions (or these) while membership goes on."""
        self._client.pause([TopicPartition(*place) for place in places or self.assigned])

    def resume(self, places: Sequence[Place] = ()) -> None:
        self._client.resume([TopicPartition(*place) for place in places or self.assigned])

    def close(self) -> None:
        """Commits what is known to be processed and leaves the group (a static member keeps its place)."""
        try:
            self._grave.flush()
            if self._auto:
                self._commit_processed(wait=True)
        finally:
            self._client.close()

    def __enter__(self) -> Consumer[E]:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        if kind is None:
            self._done = self._at  # the block ended well: what it was given is processed
        self.close()

    def _next(self) -> Record[E] | None:
        """The next readable record of the batch; the unreadable ones before it become dead letters."""
        while self._at < len(self._batch):
            message = self._batch[self._at]
            self._at += 1
            if message.error() is not None:
                self._check(message)
                continue
            if is_mark(message):
                continue
            topic = message.topic()
            try:
                return Record(self._decoders[topic].decode(message, tombstones=self._tombstones), message)
            except DataError as broken:
                self._grave.bury(message, self._homes[topic], broken)
        return None

    def _fetch(self, num: int, wait: float) -> int:
        """Gets the next batch; what was given out before is thereby processed. Returns how many records came."""
        self._done = self._at
        if self._auto and time.monotonic() > self._due:
            self._commit_processed(wait=False)
        self._collect()
        self._taken.clear()
        messages = self._call(self._client.consume, num, 0)  # what lies ready
        if not messages and wait:
            first = self._call(self._client.poll, wait)
            messages = [] if first is None else [first, *self._call(self._client.consume, num - 1, 0)]
        if self._taken:
            messages = [m for m in messages if (m.topic(), m.partition()) not in self._taken]
        if self._before and self._auto and (ends := _ends(messages)) and not self._send(ends, wait=True):
            for place, offset in _firsts(messages).items():  # nobody saw them yet: read them again
                self._call(self._client.seek, TopicPartition(*place, offset))
            messages = []
        self._batch, self._at, self._done = messages, 0, 0
        return len(messages)

    def _collect(self) -> None:
        """Moves the processed part of the batch into the offsets to commit."""
        self._ends |= _ends(self._batch[: self._done])
        del self._batch[: self._done]
        self._at -= self._done
        self._done = 0

    def _commit_processed(self, *, wait: bool) -> None:
        self._due = time.monotonic() + _COMMIT_EVERY
        self._collect()
        if self._ends and not (self._auto and self._before):
            self._send(self._ends, wait=wait)
        self._ends = {}

    def _send(self, ends: dict[Place, int], *, wait: bool) -> bool:
        """Commits offsets, after the dead letters before them are safe. False: the group has moved on meanwhile."""
        self._grave.flush()
        offsets = [TopicPartition(*place, offset) for place, offset in ends.items()]
        try:
            self._client.commit(offsets=offsets, asynchronous=not wait)
        except KafkaException as broken:
            if broken.args[0].code() in _MOVED_ON:
                LOGGER.info("commit refused: %s; the next owner reads these records again", broken.args[0].str())
                return False
            raise self._broker.explain(broken) from None
        return True

    def _assigned(self, moved: list[TopicPartition]) -> None:
        self._joined = True
        self._tell("assigned", moved)

    def _revoked(self, moved: list[TopicPartition]) -> None:
        """Called inside `consume`, between two batches: all of the last one is processed and can be committed."""
        if self._auto:
            self._commit_processed(wait=True)
        self._tell("revoked", moved)
        self._forget(moved)

    def _lost(self, moved: list[TopicPartition]) -> None:
        self._tell("lost", moved)
        self._forget(moved)

    def _forget(self, moved: list[TopicPartition]) -> None:
        """What lies beyond is the next owner's: a commit from here could only set it back."""
        for place in moved:
            self._ends.pop((place.topic, place.partition), None)
            self._taken.add((place.topic, place.partition))

    def _tell(self, what: str, moved: list[TopicPartition]) -> None:
        if told := self._told[what]:
            told(sorted((place.topic, place.partition) for place in moved))

    def _check(self, message: Message) -> None:
        error = message.error()
        if error.code() == KafkaError._MAX_POLL_EXCEEDED:
            LOGGER.warning("the loop took longer than patience=; the group took its partitions away: %s", error.str())
        elif not str(message.topic()).startswith("^"):  # a retry topic that nobody has made yet
            raise self._broker.explain(error, topic=str(message.topic()))

    def _call(self, ask: Callable[..., Any], *args: Any) -> Any:
        try:
            return ask(*args)
        except KafkaException as broken:
            raise self._broker.explain(broken, topic=", ".join(self._homes)) from None


def _homes(broker: Broker, classes: Sequence[type], app: str) -> dict[str, str]:
    """Topics to read, each with the topic its records belong to: itself, or for a retry topic the original."""
    homes: dict[str, str] = {}
    for cls in classes:
        described = event_type(cls)
        if not described.topic:
            raise BadEvent(f"{described.name} has no topic", fix='@hr.event(topic="...")', where=described.where)
        topics.width(broker, described.topic)
        homes[described.topic] = described.topic
        if app:
            homes[retry_topic(app, described.topic)] = described.topic
    return homes


def _if_there(topic: str) -> str:
    """A pattern for exactly this topic: unlike a name it may match nothing yet."""
    return "^" + topic.replace(".", "\\.") + "$"


def _ends(messages: Iterable[Message]) -> dict[Place, int]:
    """The offset after the last of these, per partition."""
    return {(m.topic(), m.partition()): m.offset() + 1 for m in messages if m.error() is None}


def _firsts(messages: Sequence[Message]) -> dict[Place, int]:
    """The offset of the first of these, per partition."""
    return {(m.topic(), m.partition()): m.offset() for m in reversed(messages) if m.error() is None}
