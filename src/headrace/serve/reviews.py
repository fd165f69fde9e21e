"""The review queue: decisions that wait for a person, rebuilt from the topics of alerts, labels and notes."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from headrace.base.clock import MICROSECOND, rfc3339
from headrace.base.errors import DataError, NotFound, WrongType
from headrace.log.codec import Codec, Encoded
from headrace.model.event import event
from headrace.model.service import Service
from headrace.serve.memory import Row

REVIEW = "review"
_EARLY = 1_000
"""Labels whose alert may still come."""
_CORRECTABLE = 1_000
"""So many of those labelled last are kept at least, for second thoughts."""


@event(key="id", time="at")
class Note:
    """Somebody put a review off."""

    id: str
    until: datetime
    by: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """What somebody said that it was, and when."""

    fraud: bool
    by: str
    at: datetime

    def as_dict(self) -> Row:
        return {"fraud": self.fraud, "by": self.by, "labelled_at": rfc3339(self.at)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """A row that waits, and until when somebody put it off; or one that was labelled."""

    id: str
    row: Row
    until: datetime | None = None
    said: Word | None = None

    def as_dict(self) -> Row:
        if self.said is not None:
            return self.row | self.said.as_dict()
        until = None if self.until is None else rfc3339(self.until)
        return {**self.row, "snoozed_until": until}


class Reviews:
    """What waits. A label may come a little before its alert, which has a longer way; all else is in order.

    There is room for so many as the service says: one more, and the oldest falls out. It stays on the log, and is back
    when the queue is read anew and there is room for it. What was labelled can be labelled again for a while: the
    latest word counts.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._label: Codec[Any] | None = None if service.label is None else Codec(service.label.cls)
        self._waiting = OrderedDict[str, Row]()  # a dict looks for its oldest anew each time, past all that fell out
        self._done: dict[str, tuple[Row, Word]] = {}
        self._early = OrderedDict[str, Word]()
        self._until: dict[str, datetime] = {}
        self._settled = False
        self.fallen = 0
        self.note: Codec[Note] = Codec(Note)

    def __len__(self) -> int:
        return len(self._waiting)

    def alerted(self, id: str, row: Row) -> None:
        if row.get("decision") != REVIEW or id in self._done:
            return
        if id in self._early:
            self._keep(id, row, self._early.pop(id))
        else:
            self._waiting.setdefault(id, row)
            self._make_room()

    def settle(self) -> None:
        """All that was on the log is read. Until then nothing falls out: labels are read after their alerts, and only
        they say which of these still wait."""
        self._settled = True
        self._make_room()
        self._keep_latest()

    def _make_room(self) -> None:
        while self._settled and len(self._waiting) > self._service.queue:
            oldest, _ = self._waiting.popitem(last=False)
            self._until.pop(oldest, None)
            self.fallen += 1

    def labelled(self, id: str, value: bytes) -> None:
        """Of two words the later counts; one that is older than what is known changes nothing."""
        assert self._label is not None
        assert self._service.label is not None
        said = self._label.decode(value)
        word = Word(fraud=bool(said.fraud), by=said.by, at=getattr(said, self._service.label.time))
        self._until.pop(id, None)
        row, before = self._done.get(id, (None, self._early.get(id)))
        if before is not None and word.at < before.at:
            return
        row = row or self._waiting.pop(id, None)
        if row is not None:
            self._keep(id, row, word)
            return
        self._early[id] = word
        if len(self._early) > _EARLY:
            self._early.popitem(last=False)

    def _keep(self, id: str, row: Row, word: Word) -> None:
        self._done.pop(id, None)  # it becomes the last
        self._done[id] = (row, word)
        if len(self._done) > 2 * _CORRECTABLE:
            self._keep_latest()

    def _keep_latest(self) -> None:
        """By their times: from the log they come a partition after the other."""
        self._done = dict(sorted(self._done.items(), key=lambda one: one[1][1].at)[-_CORRECTABLE:])

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

    def done(self, *, most: int = 100) -> list[Review]:
        """Those that were labelled, the last one first."""
        last = islice(reversed(self._done.items()), most)
        return [Review(id=id, row=row, said=word) for id, (row, word) in last]

    def label(self, id: str, *, fraud: Any, by: Any, now: datetime) -> Encoded:
        """The record that says what it was: a person's word, the rest from the alert. A second word is dated after the
        first, however the clocks go."""
        row, before = self._done[id] if id in self._done else (self._row(id), None)
        if before is not None:
            now = max(now, before.at + MICROSECOND)
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
            try:
                self.labelled(id, value)
            except DataError:  # another system's, with a field missing: somebody said something, so nobody waits
                self._waiting.pop(id, None)
                self._until.pop(id, None)
                raise
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
