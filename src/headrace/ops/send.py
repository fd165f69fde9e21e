"""Sending from the shell: lines and key=value pairs, typed by the event of the topic, as records on the log."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec

from headrace.base.clock import SystemClock, read_time, rfc3339
from headrace.base.errors import HeadraceError, Undecodable, UsageError, WrongType
from headrace.base.ids import random_id
from headrace.expr.types import BOOL, FLOAT, INT, TIME, ListType, Type
from headrace.log import topics
from headrace.log.broker import Broker
from headrace.log.codec import ID, Codec, Encoded
from headrace.model.app import App
from headrace.model.event import EventType, unknown_field


@dataclass(slots=True, kw_only=True)
class Sent:
    """What was acknowledged: how many, and where the first and last of each partition stand."""

    topic: str
    event: str
    count: int = 0
    offsets: dict[int, tuple[int, int]] = field(default_factory=dict)


def pairs(given: Iterable[str]) -> dict[str, str]:
    """`card_id=c1 amount=9.50` as a row of text."""
    row: dict[str, str] = {}
    for one in given:
        name, sign, value = one.partition("=")
        if not sign or not name:
            raise UsageError(f"{one!r} is no key=value pair", fix="write for example amount=12.50, in quotes if spaced")
        if name in row:
            raise UsageError(f"{name!r} is given twice", fix="give each field once; --file takes many events")
        row[name] = value
    return row


class Sender:
    """Sends rows to one topic. With an app that knows the topic, each row is checked and typed by its event."""

    def __init__(
        self, broker: Broker, topic: str, app: App | None, *, key: str | None = None, tell: Callable[[str], None]
    ) -> None:
        declared = [found for found in (app.topics if app else ()) if found.name == topic]
        if declared:
            if topics.ensure(broker, *declared):
                tell(f"made the topic {topic}, as the app declares it")
        else:
            topics.width(broker, topic)  # says so if it is missing
        cls = next((event.cls for event in (app.events if app else ()) if event.topic == topic), None)
        if cls is not None and key is not None:
            raise UsageError("--key is not for typed events", why=f"{cls.__name__} says itself what its key is")
        self._broker = broker
        self._codec: Codec[Any] | None = None if cls is None else Codec(cls)
        self._key = key
        self.sent = Sent(topic=topic, event="" if cls is None else cls.__name__)
        self._failures: list[Any] = []
        self._client = broker.producer(
            {
                "partitioner": "murmur2_random",
                "enable.idempotence": True,
                "linger.ms": 5,
                "message.max.bytes": 100_000_000,  # the topic's own limit decides, not the client's
                "on_delivery": self._arrived,
            }
        )

    def typed(self, row: dict[str, str]) -> dict[str, Any]:
        """Text as people type it, made what the columns want; without a schema, JSON where it reads as JSON."""
        if self._codec is None:
            return {name: _guess(text) for name, text in row.items()}
        event = self._codec.event
        return {name: _as_type(event, name, text) for name, text in row.items()}

    def check(self, row: dict[str, Any]) -> Encoded:
        """The row as a record, or the error that says why it cannot be one; nothing is sent."""
        if self._codec is not None:
            return self._codec.encode(self._codec.read(row))
        key = None if self._key is None else self._key.encode()
        return key, msgspec.json.encode(row), [(ID, random_id().encode())], 0

    def send(self, row: dict[str, Any]) -> None:
        key, value, headers, time = self.check(row)
        while True:
            try:
                self._client.produce(self.sent.topic, value, key, timestamp=time, headers=headers)
                break
            except BufferError:  # the local queue is full: wait until the broker takes some
                self._client.poll(0.1)
        self._client.poll(0)
        self._raise_failure()

    def finish(self) -> Sent:
        """Waits until every record is acknowledged; raises if one was not."""
        while self._client.flush(1.0):
            pass
        self._raise_failure()
        return self.sent

    def _arrived(self, error: Any, message: Any) -> None:
        if error is not None:
            self._failures.append(error)
            return
        self.sent.count += 1
        first, _ = self.sent.offsets.get(message.partition(), (message.offset(), 0))
        self.sent.offsets[message.partition()] = (first, message.offset())

    def _raise_failure(self) -> None:
        if self._failures:
            raise self._broker.undelivered(self._failures[0], self.sent.topic, len(self._failures))


def send_lines(sender: Sender, lines: Iterable[str], source: str) -> Sent:
    """Sends one JSON object a line; an error names the line, and how many before it are on the log."""
    _each(lines, source, sender.send, lambda: f"{sender.finish().count:,} before it were sent")
    return sender.finish()


def check_lines(sender: Sender, lines: Iterable[str], source: str) -> None:
    """Checks every line and sends none."""
    _each(lines, source, sender.check, lambda: "nothing was sent")


def _each(
    lines: Iterable[str], source: str, act: Callable[[dict[str, Any]], object], outcome: Callable[[], str]
) -> None:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            act(_row(line))
        except HeadraceError as broken:
            why = "; ".join(filter(None, (broken.why, outcome())))
            raise type(broken)(f"{source}:{number}: {broken.what}", why=why, fix=broken.fix) from None


def _row(line: str) -> dict[str, Any]:
    try:
        row = msgspec.json.decode(line)
    except msgspec.DecodeError as broken:
        raise Undecodable("it is no JSON", why=str(broken), fix="write one JSON object a line") from None
    if not isinstance(row, dict):
        raise WrongType("it is no JSON object", why=f"it is {line.strip()[:60]}", fix="write one JSON object a line")
    return row


def _guess(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


def _as_type(event: EventType, name: str, text: str) -> Any:
    """A typed word as the JSON value of its column; what does not read as one is left for the codec to refuse."""
    if name not in {column.name for column in event.columns}:
        raise unknown_field(event, name)
    column = event.column(name)
    if column.nullable and text in ("", "null"):
        return None
    return _value(column.type, text)


def _value(kind: Type, text: str) -> Any:
    if kind == TIME:
        return rfc3339(read_time(text, now=_now()))
    if kind in (INT, FLOAT, BOOL) or isinstance(kind, ListType):
        return _guess(text)
    return text


def _now() -> datetime:
    return SystemClock().now()
