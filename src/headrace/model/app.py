"""An app: the name under which streams, tables, topics and outputs are declared together."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.base.duration import duration, show
from headrace.base.errors import BadApp
from headrace.base.where import here
from headrace.model.declared import Read, ReadTable
from headrace.model.declaring import declaring
from headrace.model.event import EventType, event_type
from headrace.model.naming import refs
from headrace.model.output import Output, Sink, difference, kind
from headrace.model.static import Static, static
from headrace.model.stream import Stream
from headrace.model.table import Table
from headrace.model.target import Target
from headrace.model.topic import Topic

if TYPE_CHECKING:
    from headrace.model.features import Features
    from headrace.model.pattern import Pattern
    from headrace.model.service import Answer, Fallback, Service

_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")


class Marked:
    """Disorder known exactly: producers write marks, only they move the frontier (rule T7)."""

    def __repr__(self) -> str:
        return "marked()"


def marked() -> Marked:
    """For `disorder=`: how far time has come is told by marks that producers write, and by nothing else."""
    return Marked()


class App:
    """Declarations that run together.

    >>> App("bank")
    App('bank')
    """

    def __init__(self, name: str, *, version: str = "v1") -> None:
        if not _NAME.fullmatch(name):
            raise BadApp(
                f"{name!r} cannot name an app",
                why="the name becomes part of topics, directories and ids: lower case, digits and dashes, up to 40",
                where=here(),
            )
        self.name = name
        self.version = version
        self.where = here()
        self._streams: dict[str, Stream] = {}
        self._tables: dict[str, Table] = {}
        self._topics: dict[str, Topic] = {}
        self._stores: dict[str, Target] = {}
        self._outputs: list[Output] = []
        self._services: dict[str, Service] = {}

    def __repr__(self) -> str:
        return f"App({self.name!r})"

    @declaring(
        'app.stream(Payment, disorder="30 s")',
        why="disorder says how far out of order events may come: windows wait that long before they close",
    )
    def stream(
        self,
        event: type,
        *,
        disorder: str | timedelta | Marked,
        idle: str | timedelta | None = "5 s",
        skew: str | timedelta = "1 min",
        name: str | None = None,
    ) -> Stream:
        """The events of a topic. `disorder`: how far out of order they may come; `idle`: after which silence a
        partition no longer holds time back (None: never); `skew`: how far ahead of now an event may be dated."""
        described = self._described(event)
        read = Read(
            event=described,
            disorder=None if isinstance(disorder, Marked) else duration(disorder),
            idle=None if idle is None else duration(idle),
            skew=duration(skew),
            name=name or described.topic,
            where=here(),
        )
        _check_not_negative(disorder=read.disorder, idle=read.idle, skew=read.skew)
        known = self._streams.setdefault(read.name, Stream(self, read, refs(described.key, described.columns)))
        if known.node != replace(read, where=known.node.where):
            raise BadApp(f"the stream {read.name!r} is declared twice, differently",
                         why="names are how plans and conditions refer to it", fix="reuse the first, or say name=",
                         where=here())  # fmt: skip
        return known

    @declaring("app.table(Customer)")
    def table(
        self,
        event: type,
        *,
        history: str | timedelta | None = None,
        ttl: str | timedelta | None = None,
        changes: bool = False,
        disorder: str | timedelta = "0 s",
        idle: str | timedelta | None = "5 s",
        name: str | None = None,
    ) -> Table:
        """The latest value per key of a compacted topic. `history`: how far back versions are kept, for
        `enrich(..., as_of=)`. `ttl`: a row that no record has renewed for so long, by the time of events, is gone as if
        it had been deleted then; without it rows stay until they are. `disorder` and `idle` are those of its versions,
        as for streams. `changes=True`: of a topic of changes, {op, before, after} as a view writes them (rule F2) or
        as Debezium does."""
        described = self._described(event)
        if not described.key:
            raise BadApp(f"{described.name} has no key", why="a table holds one value per key",
                         fix='@hr.event(..., key="...")', where=here())  # fmt: skip
        if not described.time and not changes:
            raise BadApp(f"{described.name} has no time", why="of two values of a key the later version holds, in "
                         "whatever order they come", fix='@hr.event(..., time="...")', where=here())  # fmt: skip
        read = ReadTable(
            event=described,
            disorder=duration(disorder),
            idle=None if idle is None else duration(idle),
            skew=duration("1 min"),
            history=None if history is None else duration(history),
            ttl=None if ttl is None else duration(ttl),
            changes=changes,
            name=name or described.topic,
            where=here(),
        )
        _check_not_negative(disorder=read.disorder, idle=read.idle, history=read.history)
        if read.ttl is not None and read.ttl <= timedelta(0):
            raise BadApp(f"rows of {described.name} would live for {show(read.ttl)}",
                         why="a row would be gone before anybody could ask for it",
                         fix='leave ttl out to keep rows until they are deleted, or say ttl="30 d"',
                         where=here())  # fmt: skip
        known = self._tables.setdefault(read.name, Table.of(self, read))
        if known.read != replace(read, where=known.read.where):
            raise BadApp(f"the table {read.name!r} is declared twice, differently", fix="declare it once and reuse it",
                         where=here())  # fmt: skip
        lag = None if changes else read.history
        self._topics.setdefault(described.topic, Topic(name=described.topic, compact=not changes, lag=lag))
        return known

    @declaring(
        'app.static(Country, [Country("CH", "Europe"), ...]), or app.static(Country, "countries.csv")',
        why="a static table has its rows, and a name; nothing renews them, so they have no history and no ttl",
    )
    def static(self, event: type, rows: Iterable[Any] | str | Path, *, name: str | None = None) -> Static:
        """A small table that does not change, from a list of events or a file of them (.csv, .jsonl), read now. Streams
        are enriched with it; it stands in the plan, so other rows are another plan."""
        return static(self, event, rows, name)

    @declaring('app.pattern("guessing", key="customer_id")', why="patterns are matched per key")
    def pattern(
        self,
        name: str,
        *,
        key: str,
        after_match: str = "skip past last",
        keep: str | timedelta | None = None,
        select: str | None = None,
    ) -> Pattern:
        """Rows of a key that follow each other: `.first("login", logins).then("buy", payments).within("5 min")`.
        `after_match`: what a match takes with it. `keep`: how long what has begun is kept, where there is no `within`.
        `select`: the columns that come out, `login.country as from_country, count(miss) as misses`."""
        from headrace.model.pattern import pattern

        return pattern(self, name, key=key, after_match=after_match, keep=keep, select=select)

    @declaring('app.features("card", key="card_id", source=payments, ttl="30 d")', why="ttl bounds what is remembered")
    def features(
        self,
        name: str,
        *,
        key: str,
        source: Stream,
        ttl: str | timedelta,
        lateness: str | timedelta = "1 h",
        most: int = 100_000,
        once: str | None = None,
    ) -> Features:
        """What is known of a key at each of its rows: `.over("1 h", "1 d", spent=hr.sum("amount")).last("country")`.
        `ttl`: after a silence of that long the key begins anew. `lateness`: how far behind the watermark a row may come
        and still be told exactly. `most`: rows that a key may hold; one more is a dead letter. `once`: an id; a row
        whose id the key has been told of comes out at `.duplicates`."""
        from headrace.model.features import features

        return features(self, name, key=key, source=source, ttl=ttl, lateness=lateness, most=most, once=once)

    @declaring('app.topic("alerts", retention="7 d")')
    def topic(
        self,
        name: str,
        *,
        partitions: int | None = None,
        retention: str | timedelta | None = None,
        compact: bool = False,
    ) -> Topic:
        """A topic this app writes, created with these settings when it is missing."""
        topic = Topic(
            name=name,
            partitions=partitions,
            retention=None if retention is None else duration(retention),
            compact=compact,
        )
        self.know(topic)
        return topic

    @declaring('app.service("decide", ask=Payment, answer=raw, default={"decision": "review"})')
    def service(
        self,
        name: str,
        *,
        ask: type,
        answer: Topic,
        default: Answer,
        deadline: str | timedelta = "80 ms",
        spare: str | timedelta = "15 ms",
        fallback: Fallback | None = None,
        checks: Mapping[str, str] | None = None,
        known: Mapping[str, Table] | None = None,
        ahead: str | timedelta = "1 min",
        memory: str | timedelta = "10 min",
        most: int = 256,
        queue: int = 10_000,
        tell: str = "",
        alerts: Topic | None = None,
        label: type | None = None,
        batch: Topic | None = None,
        repeats: Topic | None = None,
    ) -> Service:
        """Answers over HTTP (`headrace serve`): `POST /decide` takes an `ask` event, and tells the first row of its id
        that a flow writes to `answer`, or, after `deadline`, what `fallback` says within `spare`, else `default`.

        `checks`: conditions on the event, each with what to say. `known`: columns whose value must be a key of a table.
        `ahead`, `memory`: how far from now it may be dated; within `memory` the same id gets the same answer. `most`:
        how many may wait at once. `tell`: columns that are told. `alerts`: the topic of rows to show; those decided
        `review` wait there for a `label`, at most `queue` of them. `batch`: the topic of ids that a batch job would
        have stopped. `repeats`: the topic on which the flow sets events aside whose id it knows from longer ago than
        `memory`; they are refused, too."""
        from headrace.model.service import service

        if not _NAME.fullmatch(name) or name in self._services:
            raise BadApp(f"{name!r} cannot name a service", why="it is a path of its own: lower case and dashes",
                         where=here())  # fmt: skip
        self._services[name] = service(
            name, ask=ask, answer=answer, default=default, deadline=deadline, spare=spare, fallback=fallback,
            checks=checks or {}, known=known or {}, ahead=ahead, memory=memory, most=most, queue=queue, tell=tell,
            alerts=alerts, label=label, batch=batch, repeats=repeats,
        )  # fmt: skip
        return self._services[name]

    def add(self, output: Output) -> None:
        """Called by `stream.to(...)`."""
        self.know(output.target)
        self._outputs.append(output)

    @property
    def outputs(self) -> tuple[Output, ...]:
        return tuple(self._outputs)

    @property
    def services(self) -> tuple[Service, ...]:
        return tuple(self._services.values())

    @property
    def topics(self) -> tuple[Topic, ...]:
        """Every topic the app reads or writes, with its declared settings."""
        read = {
            s.node.event.topic: Topic(name=s.node.event.topic)
            for s in self._streams.values()
            if isinstance(s.node, Read)
        }
        served = {topic.name: topic for service in self._services.values() for topic in service.topics}
        return tuple((served | read | self._topics).values())

    @property
    def events(self) -> tuple[EventType, ...]:
        """Every event type that is read, by stream or table."""
        streams = [s.node.event for s in self._streams.values() if isinstance(s.node, Read)]
        return tuple(dict.fromkeys(streams + [t.event for t in self._tables.values()]))

    def know(self, sink: Sink) -> None:
        """Remembers a topic or a store; refuses one that is known as something else."""
        known: Sink
        if isinstance(sink, Topic):
            known = self._topics.setdefault(sink.name, sink)
        else:
            known = self._stores.setdefault(sink.label, sink)
            if other := next(
                (one for one in self._stores.values() if one.label != sink.label and one.meets(sink)), None
            ):
                raise BadApp(f"{sink.label} is a place of {other.label} too",
                             why="each has rows that the other would overwrite, and a rebuild of one removes both",
                             fix="declare it once and reuse it, or give one another name", where=here())  # fmt: skip
        if known != sink:
            raise BadApp(f"the {kind(sink)} {sink.name!r} is declared twice, differently",
                         why=difference(known, sink), fix="declare it once and reuse it",
                         where=here())  # fmt: skip

    def _described(self, event: type) -> EventType:
        described = event_type(event)
        if not described.topic:
            raise BadApp(f"{described.name} has no topic", why="a stream reads one",
                         fix='@hr.event(topic="...", ...)', where=here())  # fmt: skip
        return described


def _check_not_negative(**given: timedelta | None) -> None:
    for name, value in given.items():
        if value is not None and value < timedelta(0):
            raise BadApp(f"{name} is negative", why="it says how long, or how far", fix=f'{name}="30 s"', where=here())
