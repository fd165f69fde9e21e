"""The codec: an event as key, value, headers and time of a record, and back (rules F1 and F3)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Generic, TypeVar

import msgspec
from msgspec.structs import asdict, force_setattr

from headrace.base.clock import EPOCH
from headrace.base.duration import MILLISECOND
from headrace.base.errors import DataError, Undecodable, WrongType
from headrace.base.ids import random_id
from headrace.base.keys import key_text, value_text
from headrace.log.offsets import FIRST_TIME
from headrace.model.event import EventType, event_type, fields, located, misread, unknown_field

E = TypeVar("E")

Headers = list[tuple[str, bytes]]
Encoded = tuple[bytes | None, bytes, Headers, int]
"""Key, value, headers, record time in milliseconds (0: the client's now)."""

TYPE, SCHEMA, ID = "hr-type", "hr-schema", "hr-id"
MARK = "hr-mark"
"""The only header of a mark, a record without key and value: nothing older follows in its partition (rule T7). Its
value is that time in microseconds since 1970, as text."""

_json = msgspec.json.Encoder().encode


class Codec(Generic[E]):
    """Encodes and decodes one event class. Built once, called per record."""

    def __init__(self, cls: type[E]) -> None:
        self.event: EventType = event_type(cls)
        self._cls = cls
        self._fields = fields(cls)
        self._decode = msgspec.json.Decoder(cls).decode
        self._times = tuple(field.column.name for field in self._fields if field.holds_time)
        self._loose = tuple((field.column.name, field.settle) for field in self._fields if field.loose)
        self.headers: Headers = [(TYPE, self.event.name.encode()), (SCHEMA, self.event.schema.encode())]
        self._key = _keyed(self.event)

    def encode(self, event: Any) -> Encoded:
        """The event as a record's parts."""
        described = self.event
        try:
            row = asdict(event)
            for name in self._times:
                row[name] = _wire_time(row[name])
            id = (value_text(getattr(event, described.id)) if described.id else random_id()).encode()
            time = _milliseconds(getattr(event, described.time)) if described.time else 0
            return self._key(event), _json(row), [*self.headers, (ID, id)], time
        except UnicodeEncodeError as broken:
            raise WrongType(
                f"{described.name} holds text that is no Unicode", why=str(broken), fix="remove lone surrogates"
            ) from None

    def decode(self, value: bytes) -> E:
        """The event in a record's value; fields it does not know are passed over, so that writers may upgrade first."""
        return self._read(value, None)

    def _read(self, value: bytes, given: dict[str, Any] | None) -> E:
        try:
            event: Any = self._decode(value)
        except (msgspec.DecodeError, UnicodeDecodeError) as broken:
            raise self._explain(broken, given) from None
        for name, settle in self._loose:
            given = getattr(event, name)
            try:
                settled = settle(given)
            except DataError as broken:
                raise located(broken, self.event.name, name) from None
            if settled is not given:
                force_setattr(event, name, settled)
        return event  # type: ignore[no-any-return]

    def key(self, *values: Any) -> bytes:
        """The record key of these key values."""
        if len(values) != len(self.event.key):
            raise WrongType(
                f"{self.event.name} has {len(self.event.key)} key columns, {len(values)} values are given",
                why=f"its key is {', '.join(self.event.key) or 'none'}",
            )
        by_name = {field.column.name: field.settle for field in self._fields}
        settled = [by_name[name](value) for name, value in zip(self.event.key, values, strict=True)]
        return key_text(settled).encode()

    def read(self, row: dict[str, Any]) -> E:
        """An event from plain values as typed at a shell or found in a JSON line; nothing unknown is passed over."""
        known = {column.name for column in self.event.columns}
        for name in row:
            if name not in known:
                raise unknown_field(self.event, name)
        return self._read(_json(row), row)

    def _explain(self, broken: msgspec.DecodeError | UnicodeDecodeError, given: dict[str, Any] | None) -> DataError:
        if not isinstance(broken, msgspec.ValidationError):
            return Undecodable(
                f"a value of {self.event.name} is no JSON", why=str(broken), fix="values are JSON objects (F1)"
            )
        return misread(self.event, broken, given)


def _keyed(event: EventType) -> Callable[[Any], bytes | None]:
    if not event.key:
        return lambda _: None
    if len(event.key) == 1:
        (only,) = event.key
        return lambda found: value_text(getattr(found, only)).encode()
    return lambda found: key_text([getattr(found, name) for name in event.key]).encode()


def _wire_time(value: Any) -> Any:
    """RFC 3339 with six digits and Z. msgspec leaves out zero microseconds, and is ten times faster than strftime."""
    if value is None:
        return None
    if isinstance(value, list):
        return [_wire_time(one) for one in value]
    text = _json(value)
    return msgspec.Raw(text if value.microsecond else text[:-2] + b'.000000Z"')


def _milliseconds(moment: datetime) -> int:
    """As `record_time`, without its check: an event's time is aware already."""
    return max(FIRST_TIME, (moment - EPOCH) // MILLISECOND)
