"""A decision service as declared: events that are asked about over HTTP, and the topic on which a flow answers them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from headrace.base.duration import duration
from headrace.base.errors import BadApp
from headrace.base.where import Where, here
from headrace.expr.types import INT, TEXT, Column
from headrace.model.declared import ReadTable
from headrace.model.event import EventType, event_type
from headrace.model.naming import condition_of
from headrace.model.table import Table
from headrace.model.topic import Topic

Answer = Mapping[str, Any]
"""What is told: `decision`, `reasons` and whatever else the flow says."""
Fallback = Callable[[Any], Callable[[Any], Answer]]
"""Made once with the client of a connected app, then called with each event that got no answer in time; from several
threads."""

TOLD = ("decision", "reasons", "score", "rules_version", "model_version")
"""Columns of an answer that are told; what else is in its row stays inside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A condition over the event's columns, and what to say when it does not hold."""

    condition: Any
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A column whose value must be a key of a table."""

    column: str
    table: ReadTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """`POST /<name>` with an `ask` event as JSON: it is written to its topic, and the first row of the same id on
    `answer` is told. After `deadline` the fallback speaks, and if it does not within `spare`, `default` does."""

    name: str
    ask: EventType
    answer: Topic
    default: Answer
    deadline: timedelta
    spare: timedelta
    fallback: Fallback | None
    checks: tuple[Check, ...]
    known: tuple[Known, ...]
    ahead: timedelta
    memory: timedelta
    most: int
    queue: int
    tell: tuple[str, ...]
    alerts: Topic | None
    label: EventType | None
    batch: Topic | None
    repeats: Topic | None
    where: Where | None = None

    @property
    def degraded(self) -> Topic:
        """What was told without the flow, so that it can be told again, and looked up."""
        return Topic(name=f"{self.ask.topic}.{self.name}.degraded")

    @property
    def notes(self) -> Topic:
        """Which reviews somebody put off, and until when."""
        return Topic(name=f"{self.ask.topic}.{self.name}.notes", compact=True)

    @property
    def topics(self) -> tuple[Topic, ...]:
        """Every topic the service reads or writes."""
        found = [Topic(name=self.ask.topic), self.answer, self.degraded]
        if self.alerts is not None:
            found += [self.alerts, self.notes]
        if self.label is not None:
            found.append(Topic(name=self.label.topic))
        found += [topic for topic in (self.batch, self.repeats) if topic is not None]
        tables = dict.fromkeys(one.table for one in self.known)
        return (*found, *(Topic(name=table.event.topic, compact=True, lag=table.history) for table in tables))


def service(
    name: str,
    *,
    ask: type,
    answer: Topic,
    default: Answer,
    deadline: str | timedelta,
    spare: str | timedelta,
    fallback: Fallback | None,
    checks: Mapping[str, str],
    known: Mapping[str, Table],
    ahead: str | timedelta,
    memory: str | timedelta,
    most: int,
    queue: int,
    tell: str,
    alerts: Topic | None,
    label: type | None,
    batch: Topic | None,
    repeats: Topic | None,
) -> Service:
    """Reads and checks what `app.service` was given."""
    place, event = here(), event_type(ask)
    for role in ("topic", "id", "time"):
        if not getattr(event, role):
            raise BadApp(f"{event.name} has no {role}, so nobody can be answered about it",
                         why="it is written to its topic, known again by its id, and must be dated near now",
                         fix=f'@hr.event({role}="...")', where=place)  # fmt: skip
    if event.column(event.id).type != TEXT:
        raise BadApp(f"the id of {event.name} is {event.column(event.id).type}", why="answers are found by text ids",
                     fix=f"declare {event.id}: str", where=place)  # fmt: skip
    told = tuple(part.strip() for part in tell.split(",")) if tell else TOLD
    if "decision" not in default:
        raise BadApp("the default answer has no decision", why="it is what is told when nobody else speaks in time",
                     fix='default={"decision": "review", "reasons": ["no answer in time"]}', where=place)  # fmt: skip
    times = {"deadline": duration(deadline), "memory": duration(memory)}
    for what, given in times.items():
        if given <= timedelta(0):
            raise BadApp(f"{what} is nothing", why="it is a time to wait, or to remember", fix=f'{what}="1 min"',
                         where=place)  # fmt: skip
    for what, count, usual in (("most", most, 256), ("queue", queue, 10_000)):
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise BadApp(f"{what}={count!r}", why="it says how many may wait at once", fix=f"{what}={usual}",
                         where=place)  # fmt: skip
    found = tuple(Check(condition=condition_of(text, event.columns, place), says=says) for text, says in checks.items())
    return Service(
        name=name,
        ask=event,
        answer=answer,
        default=dict(default),
        deadline=times["deadline"],
        spare=duration(spare),
        fallback=fallback,
        checks=found,
        known=tuple(_known(column, table, event, place) for column, table in known.items()),
        ahead=duration(ahead),
        memory=times["memory"],
        most=most,
        queue=queue,
        tell=told,
        alerts=alerts,
        label=None if label is None else _label(event_type(label), event, alerts, place),
        batch=batch,
        repeats=repeats,
        where=place,
    )


def _known(column: str, table: Any, ask: EventType, place: Where | None) -> Known:
    """A column and a table whose keys can be compared as texts, by the log alone: a service keeps keys, no rows."""
    mine = next((one for one in ask.columns if one.name == column), None)
    if mine is None:
        raise BadApp(f"known={{{column!r}: ...}}, but {ask.name} has no such column",
                     why=f"it has {', '.join(one.name for one in ask.columns)}", fix="name one of them",
                     where=place)  # fmt: skip
    if not isinstance(table, Table):
        raise BadApp(f"known={{{column!r}: ...}} is no table of a topic",
                     why="the service follows the topic, and knows the keys that are on it",
                     fix=f'known={{"{column}": app.table(...)}}', where=place)  # fmt: skip
    read, keys = table.read, ", ".join(map(str, table.event.key))
    if len(table.event.key) != 1 or table.event.column(keys).type != TEXT or mine.type != TEXT:
        raise BadApp(f"{ask.name}.{column} cannot be a key of {read.name}",
                     why=f"it is {mine.type}, the key is {keys}: one text is looked up among texts",
                     fix="declare both as str, and the table with one key", where=place)  # fmt: skip
    if read.changes or read.ttl is not None:
        raise BadApp(f"the keys of {read.name} are not known from its topic alone",
                     why="its records are changes, and name no key" if read.changes else
                     "its rows go by themselves, by the time of events",
                     fix="use a table of a compacted topic without ttl; a tombstone removes a key",
                     where=place)  # fmt: skip
    return Known(column=column, table=read)


def _label(label: EventType, ask: EventType, alerts: Topic | None, place: Where | None) -> EventType:
    """An event that a person's word can be written as: the rest of its fields come from the alert it is about."""
    wanted = (Column("fraud", INT), Column("by", TEXT), ask.column(ask.id))
    lacking = [str(column) for column in wanted if column not in label.columns]
    if lacking or not label.topic or not label.time or alerts is None:
        raise BadApp(
            f"{label.name} cannot be what people label with",
            why="alerts= says which rows wait for one" if alerts is None else
            f"it needs a topic, a time, and the fields {', '.join(map(str, wanted))}",
            fix="say alerts=" if alerts is None else f"add {', '.join(lacking) or 'topic= and time='}",
            where=place,
        )  # fmt: skip
    return label
