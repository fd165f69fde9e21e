"""A record as read: the event and its place in the log, and how a topic's records are told apart and decoded."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Generic, TypeVar

from confluent_kafka import Message
from msgspec import Struct

from headrace.base.clock import from_micros
from headrace.base.errors import MissingField, Undecodable, WrongType
from headrace.log.codec import MARK, TYPE, Codec

E = TypeVar("E")


class Record(Struct, Generic[E], frozen=True, gc=False):
    """An event and where it stood. Places are looked up when asked for: most loops never do."""

    event: E
    message: Any

    @property
    def topic(self) -> str:
        return self.message.topic()  # type: ignore[no-any-return]

    @property
    def partition(self) -> int:
        return self.message.partition()  # type: ignore[no-any-return]

    @property
    def offset(self) -> int:
        return self.message.offset()  # type: ignore[no-any-return]

    @property
    def key(self) -> bytes | None:
        return self.message.key()  # type: ignore[no-any-return]

    @property
    def time(self) -> datetime:
        """The record's time: the event's, in whole milliseconds (rule F3)."""
        return from_micros(self.message.timestamp()[1] * 1000)

    @property
    def headers(self) -> dict[str, bytes]:
        return dict(self.message.headers() or ())

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}/{self.offset} {self.event}"


def is_mark(message: Message) -> bool:
    """Whether a record is a producer's mark, which says a time and holds no event (rule T7)."""
    return message.value() is None and any(name == MARK for name, _ in message.headers() or ())


class Decoder(Generic[E]):
    """Decodes the records of one topic, which holds one event class or several told apart by header `hr-type`."""

    def __init__(self, classes: Sequence[type[E]]) -> None:
        codecs = [Codec(cls) for cls in classes]
        self._by_type = {codec.event.name.encode(): codec for codec in codecs}
        self._only = codecs[0] if len(codecs) == 1 else None
        if self._only is not None:  # what an app wrote has the name of its topic for a type
            self._by_type[self._only.event.topic.encode()] = self._only

    def decode(self, message: Message, *, tombstones: bool = False) -> E:
        """The event; a DataError says why there is none (rule B1). With `tombstones`, an empty value is None."""
        codec = self._only
        for name, value in message.headers() or ():
            if name == TYPE:
                codec = self._by_type.get(value)
                if codec is None:
                    raise self._unknown(value)
                break
        if codec is None:
            raise self._unknown(None)
        if message.key() is None and codec.event.key:
            raise MissingField(
                f"a record of {codec.event.name} has no key",
                why=f"its key is {', '.join(codec.event.key)}; without it, records of one key are in no order",
                fix="set the record key when producing",
            )
        value = message.value()
        if value is None:
            if tombstones:
                return None  # type: ignore[return-value]
            raise Undecodable(
                f"a record of {codec.event.name} has no value",
                why="an empty value deletes a key from a table; a stream has nothing to delete",
                fix="read it as a table, or with tombstones=True",
            )
        return codec.decode(value)

    def _unknown(self, name: bytes | None) -> WrongType:
        known = ", ".join(sorted(codec.event.name for codec in self._by_type.values()))
        found = "a record says no type" if name is None else f"a record is of type {name.decode(errors='replace')!r}"
        return WrongType(f"{found}", why=f"read here are {known}", fix=f"set header {TYPE} to one of them")
