"""What the desk hears from the log: what the flow says at once; events and degraded answers of any desk when there is
time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from hashlib import blake2b
from time import monotonic
from typing import Any

import msgspec

from headrace.log.arrivals import Arrivals
from headrace.log.broker import Broker
from headrace.model.service import Service
from headrace.serve import LOGGER
from headrace.serve.figures import Figures
from headrace.serve.memory import Memory, Row, told_of

_MORE = ("why", "by")
"""What a degraded answer tells beside the columns of any."""


def content_of(value: bytes) -> bytes:
    """A digest by which two events of one id are compared."""
    return blake2b(value, digest_size=16).digest()


class Hearing:
    """Two readers, each with a thread that decodes; what they read is applied in the event loop."""

    def __init__(self, service: Service, memory: Memory, figures: Figures) -> None:
        self._service, self._memory, self._figures = service, memory, figures
        self._id_of = _id_reader(service.ask.id)
        self._counting = False
        self._readers: list[Arrivals] = []

    async def start(self, broker: Broker, since: datetime) -> None:
        """Reads what there is since then, and goes on. What was answered before is remembered, not counted."""
        self._loop, service = asyncio.get_running_loop(), self._service
        answers, others = [service.answer.name], [service.ask.topic, service.degraded.name]
        answers += [] if service.repeats is None else [service.repeats.name]
        reader = await asyncio.to_thread(Arrivals, broker, answers, self._take_answers, since=since)
        self._readers.append(reader)  # one by one: whoever ends it in between closes those that are there
        reader = await asyncio.to_thread(Arrivals, broker, others, self._take_others, since=since, patient=True)
        self._readers.append(reader)
        for reader in self._readers:
            await asyncio.to_thread(reader.catch_up)
        self._counting = True

    async def stop(self) -> None:
        for reader in self._readers:
            await asyncio.to_thread(reader.close)

    @property
    def alive(self) -> bool:
        return all(reader.alive for reader in self._readers)

    def _take_answers(self, messages: list[Any]) -> None:
        said = [message for message in messages if message.topic() == self._service.answer.name]
        rows = self._read(said, lambda message: msgspec.json.decode(message.value()))
        self._loop.call_soon_threadsafe(self._answers, rows)
        if len(said) < len(messages):
            repeats = [message for message in messages if message.topic() != self._service.answer.name]
            self._loop.call_soon_threadsafe(self._repeats, self._read(repeats, lambda _: None))

    def _take_others(self, messages: list[Any]) -> None:
        asked = [message for message in messages if message.topic() == self._service.ask.topic]
        degraded = [message for message in messages if message.topic() == self._service.degraded.name]
        contents = self._read(asked, lambda message: content_of(message.value()))
        self._loop.call_soon_threadsafe(self._events, contents)
        if degraded:
            told = self._read(degraded, lambda message: msgspec.json.decode(message.value()))
            self._loop.call_soon_threadsafe(self._degraded, told)

    def _read(self, messages: list[Any], what: Callable[[Any], Any]) -> list[tuple[str, Any]]:
        """Ids, each with something of its record; runs in a reader's thread, so that the loop need not wait for it."""
        found = []
        for message in messages:
            if message.value() is None:
                continue  # a mark, or a tombstone
            try:
                found.append((self._id_of(message.value()), what(message)))
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                self._loop.call_soon_threadsafe(self._unreadable)
        return found

    def _unreadable(self) -> None:
        self._figures.unreadable += 1

    def _events(self, found: list[tuple[str, bytes]]) -> None:
        for id, content in found:
            self._memory.written(id, content, monotonic())

    def _degraded(self, found: list[tuple[str, Row]]) -> None:
        """Told before a restart, or by another desk; what this one told itself it knows."""
        for id, row in found:
            case = self._memory.case(id, monotonic())
            if not case.degraded and case.outcome is None:
                case.degraded, case.told = True, msgspec.json.encode(told_of(row, (*self._service.tell, *_MORE)))

    def _repeats(self, found: list[tuple[str, None]]) -> None:
        for id, _ in found:
            self._memory.repeated(id, monotonic())

    def _answers(self, found: list[tuple[str, Row]]) -> None:
        for id, row in found:
            twin = self._memory.answered(id, row, self._service.tell, monotonic())
            if self._counting:
                self._count(id, row, twin)

    def _count(self, id: str, row: Row, twin: str | None) -> None:
        if twin is not None:
            self._figures.twins[twin] += 1
            if twin == "disagreed":
                LOGGER.error("two answers for one id differ, although both saw the same of the log")
            return
        self._figures.decisions[str(row.get("decision"))] += 1
        case = self._memory.case(id, monotonic())
        if case.degraded:
            same = msgspec.json.decode(case.told).get("decision") == row.get("decision")
            self._figures.late["same" if same else "other"] += 1


def _id_reader(name: str) -> Callable[[bytes], str]:
    """Reads nothing of a record but its id."""
    decode = msgspec.json.Decoder(msgspec.defstruct("Only", [(name, str)])).decode
    return lambda value: str(getattr(decode(value), name))
