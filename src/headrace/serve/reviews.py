"""The review queue: decisions that wait for a person, rebuilt from the topics of alerts, labels and notes."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from headrace.base.clock import rfc3339
from headrace.base.errors import NotFound, WrongType
from headrace.log.codec import Codec, Encoded
from headrace.model.event import event
from headrace.model.service import Service
from headrace.serve.memory import Row

REVIEW = "review"
_EARLY = 1_000
"""Labels whose alert may still come."""


@event(key="id", time="at")
class Note:
    """Somebody put a review off."""

    id: str
    until: datetime
    by: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """A row that waits, and until when somebody put it off."""

    id: str
    row: Row
    until: datetime | None = None

    def as_dict(self) -> Row:
        until = None if self.until is None else rfc3339(self.until)
        return {**self.row, "snoozed_until": until}


class Reviews:
    """What waits. A label may come a little before its alert, which has a longer way; all else is in order.

    There is room for so many as the service says: one more, and the oldest falls out. It stays on the log, and is back
    when the queue is read anew and there is room for it.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._label: Codec[Any] | None = None if service.label is None else Codec(service.label.cls)
        self._waiting: dict[str, Row] = {}
        self._labelled: deque[str] = deque(maxlen=_EARLY)
        self._until: dict[str, datetime] = {}
        self._settled = False
        self.fallen = 0
        self.note: Codec[Note] = Codec(Note)

    def __len__(self) -> int:
        return len(self._waiting)

    def alerted(self, id: str, row: Row) -> None:
        if row.get("decision") == REVIEW and id not in self._labelled:
            self._waiting.setdefault(id, row)
            self._make_room()

    def settle(self) -> None:
        """All that was on the log is read. Until then nothing falls out: labels are read after their alerts, and only
        they say which of these still wait."""
        self._settled = True
        self._make_room()

    def _make_room(self) -> None:
        while self._settled and len(self._waiting) > self._service.queue:
            oldest = next(iter(self._waiting))
            del self._waiting[oldest]
            self._until.pop(oldest, None)
            self.fallen += 1

    def labelled(self, id: str) -> None:
        if self._waiting.pop(id, None) is None:
            self._labelled.append(id)
        self._until.pop(id, None)

    def noted(self, value: bytes) -> None:
        note = self.note.decode(value)
        self._until[note.id] = note.until

    def due(self, now: datetime, *, most: int = 100, snoozed: bool = False) -> list[Review]:
        """The first ones that wait, oldest first; those put off only if asked for."""
        found: list[Review] = []
        for id, row in self._waiting.items():
            until = self._until.get(id)
            off = until is not None and until > now
            if off == snoozed:
                found.append(Review(id=id, row=row, until=until if off else None))
                if len(found) == most:
                    break
        return found

    def label(self, id: str, *, fraud: Any, by: Any, now: datetime) -> Encoded:
        """The record that says what it was: a person's word, the rest from the alert."""
        row = self._row(id)
        if not isinstance(fraud, bool):
            raise WrongType("fraud is neither true nor false", fix='send {"fraud": true, "by": "ann"}')
        if self._label is None or self._service.label is None:
            raise NotFound(
                "this service takes no labels", why="it declares none", fix="label=Label in app.service(...)"
            )
        event = self._service.label
        wanted = [column.name for column in event.columns]
        said = {"fraud": int(fraud), "by": _name(by), event.time: rfc3339(now)}
        return self._label.encode(self._label.read({name: row[name] for name in wanted if name in row} | said))

    def snooze(self, id: str, *, until: Any, by: Any, now: datetime) -> Encoded:
        """The record that puts a review off."""
        self._row(id)
        if not isinstance(until, str):
            raise WrongType("until is no time", fix='send {"until": "2026-11-03T15:00:00Z", "by": "ann"}')
        return self.note.encode(self.note.read({"id": id, "until": until, "by": _name(by), "at": rfc3339(now)}))

    def take(self, topic: str, id: str, row: Row, value: bytes) -> None:
        """A record of one of the topics."""
        if self._service.alerts is not None and topic == self._service.alerts.name:
            self.alerted(id, row)
        elif self._service.label is not None and topic == self._service.label.topic:
            self.labelled(id)
        elif topic == self._service.notes.name:
            self.noted(value)

    def _row(self, id: str) -> Row:
        if id not in self._waiting:
            raise NotFound("no review of that id waits", why="it was labelled, is too old, or never was one",
                           fix="GET /reviews lists those that wait")  # fmt: skip
        return self._waiting[id]


def _name(by: Any) -> str:
    if not isinstance(by, str) or not by.strip() or len(by) > 80:
        raise WrongType("by is no name", why="a label says whose word it is", fix='send "by": "ann"')
    return by.strip()
