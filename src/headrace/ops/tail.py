"""Following a topic: where to start as people say it, and each record decoded for the eye."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from headrace.base.clock import SystemClock, from_micros, read_time
from headrace.base.errors import UsageError
from headrace.log.broker import Broker
from headrace.log.codec import ID, TYPE
from headrace.log.read import Last, Offset, Start, read


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A record as shown: its place, its time, its key, and its value if it is JSON, else its bytes."""

    topic: str
    partition: int
    offset: int
    time: datetime
    key: str | None
    type: str
    id: str
    value: Any
    raw: bytes | None
    """The bytes of a value that is no JSON; None otherwise."""


def start_of(text: str) -> Start:
    """`-10` (the last ten), `earliest`, an offset, or a time as `read_time` takes it."""
    typed = text.strip()
    if typed == "earliest":
        return None
    if typed == "latest":
        raise UsageError("from the latest there is nothing to show", fix="--from -1, or --follow to wait for more")
    if typed.startswith("-") and typed[1:].isdigit():
        return Last(int(typed[1:]))
    return Offset(int(typed)) if typed.isdigit() else read_time(typed, now=SystemClock().now())


def tail(broker: Broker, topic: str, start: Start, *, follow: bool = False) -> Iterator[Line]:
    """The records of a topic in the order of their times, then on as they arrive if told."""
    return map(line_of, read(broker, topic, start, follow=follow))


def line_of(message: Any) -> Line:
    headers = {name: value.decode(errors="replace") for name, value in message.headers() or () if value is not None}
    value, raw = decoded(message.value())
    key = message.key()
    return Line(
        topic=message.topic(),
        partition=message.partition(),
        offset=message.offset(),
        time=from_micros(message.timestamp()[1] * 1000),
        key=None if key is None else key.decode(errors="backslashreplace"),
        type=headers.get(TYPE, ""),
        id=headers.get(ID, ""),
        value=value,
        raw=raw,
    )


def decoded(value: bytes | None) -> tuple[Any, bytes | None]:
    """JSON as values, or else the bytes."""
    if value is None:
        return None, None
    try:
        return msgspec.json.decode(value), None
    except msgspec.DecodeError:
        return None, value
