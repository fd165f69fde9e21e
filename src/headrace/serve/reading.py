"""Reading a request: a body becomes an event of the declared class, or an error that says what is wrong with it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import datetime
from typing import Any

import msgspec

from headrace.base.clock import rfc3339
from headrace.base.duration import show
from headrace.base.errors import (
    BodyTooLarge,
    CardNumber,
    CheckFailed,
    ClockAhead,
    DoesNotFit,
    NotJson,
    TooDeep,
    TooOld,
    Undecodable,
    WrongType,
)
from headrace.expr import by_attribute, compile
from headrace.log.codec import Codec
from headrace.model.event import unknown_field
from headrace.model.service import Service
from headrace.serve.card_numbers import holds_card_number, worth_a_look

MOST_BYTES = 16 * 1024
_DEEPEST = 4


async def body_of(content_type: str, length: str | None, chunks: AsyncIterator[bytes]) -> bytes:
    """The body, if it is said to be JSON and small; a large one is not read to its end."""
    if content_type.partition(";")[0].strip().lower() != "application/json":
        raise NotJson("the body is not said to be JSON", fix="send Content-Type: application/json")
    if length is not None and length.isdigit() and int(length) > MOST_BYTES:
        raise _too_large()
    body = b""
    async for chunk in chunks:
        body += chunk
        if len(body) > MOST_BYTES:
            raise _too_large()
    return body


def row_of(body: bytes) -> dict[str, Any]:
    """The body as a JSON object without depth and without card numbers."""
    try:
        row = msgspec.json.decode(body)
    except RecursionError:
        raise _too_deep() from None
    except (msgspec.DecodeError, UnicodeDecodeError) as broken:
        raise Undecodable("the body is no JSON", why=str(broken), fix="send one JSON object") from None
    if not isinstance(row, dict):
        raise WrongType("the body is JSON, but no object", fix="send one JSON object")
    if _depth(row) > _DEEPEST:
        raise _too_deep()
    if worth_a_look(body) and holds_card_number(row):
        raise CardNumber(
            "something in the request may be a card number",
            why="13 to 19 digits with a card's check digit; it was not written anywhere",
            fix="send a token for the card, and its last four digits",
        )
    return row


class Reading:
    """Reads the events of one service: strictly typed, checked as declared, dated near now."""

    def __init__(self, service: Service, now: Callable[[], datetime]) -> None:
        self._service, self._now = service, now
        self.codec: Codec[Any] = Codec(service.ask.cls)
        self._known = {column.name for column in service.ask.columns}
        self._checks = [(compile(check.condition, by_attribute), check) for check in service.checks]

    def event_of(self, body: bytes) -> Any:
        row = row_of(body)
        for name in row:
            if name not in self._known:
                raise unknown_field(self._service.ask, name)
        event = self.codec.decode(body)  # from the body itself: 12.10 has gone through no float
        for holds, check in self._checks:
            try:
                so, why = holds(event) is True, f"not so: {check.condition}"
            except DoesNotFit as broken:
                so, why = False, broken.what
            if not so:
                raise CheckFailed(check.says, why=why, fix="send values for which it holds")
        self._check_time(getattr(event, self._service.ask.time))
        return event

    def _check_time(self, at: datetime) -> None:
        now, ask = self._now(), self._service.ask
        if at - now > self._service.ahead:
            raise ClockAhead(
                f"{ask.name}.{ask.time} is in the future",
                why=f"here it is {rfc3339(now)}; {show(self._service.ahead)} ahead is allowed",
                fix="set the sender's clock",
            )
        if now - at > self._service.memory:
            raise TooOld(
                f"{ask.name}.{ask.time} is too long ago to decide on it now",
                why=f"here it is {rfc3339(now)}; answers are remembered for {show(self._service.memory)}",
                fix=f"nobody waits for it any more; for the record it can be sent to the topic {ask.topic}, where the "
                "flow takes it, or sets it aside if it is too late for that",
            )


def _depth(value: Any) -> int:
    """How many objects and lists stand inside each other. Their number is bounded by the body's size."""
    level, deep = [value], 0
    while level:
        deep += 1
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
    return deep


def _too_deep() -> TooDeep:
    return TooDeep("the body has objects or lists inside each other", fix="an event is flat: name and value")


def _too_large() -> BodyTooLarge:
    return BodyTooLarge(f"the body is larger than {MOST_BYTES // 1024} KB", fix="send the event alone")
