"""The client: what a program does with the log of an app; declarations hold no connection, this does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from headrace.base.errors import DataError, UsageError
from headrace.base.settings import Settings, load
from headrace.features.reader import FeatureReader
from headrace.log import topics
from headrace.log.broker import Broker
from headrace.log.consume import Consumer, Deliver
from headrace.log.produce import Producer
from headrace.log.read import read
from headrace.log.record import Decoder, Record
from headrace.log.table import Table
from headrace.model.app import App
from headrace.model.event import event_type
from headrace.model.features import Features
from headrace.model.stream import Stream
from headrace.model.table import Table as DeclaredTable
from headrace.model.topic import Topic
from headrace.ops import endpoints, query
from headrace.ops import features as found
from headrace.ops.policy import Policies

if TYPE_CHECKING:
    from headrace.features.ahead import Ahead

E = TypeVar("E")


def connect(app: App, settings: Settings | None = None) -> Client:
    """Opens the log for an app and makes the topics it declares.

        with hr.connect(bank) as c:
            c.send(Payment(...))
            for record in c.consumer(Payment, group="report"):
                ...

    Without `settings` they are read as the command line does: headrace.toml, then the environment.
    """
    settings = settings or load()
    broker = endpoints.broker(settings)
    topics.ensure(broker, *app.topics)
    return Client(app, broker, settings)


class Client:
    """Producers, consumers and tables of one app; leaving the block closes all that it opened."""

    def __init__(self, app: App, broker: Broker, settings: Settings) -> None:
        self.app = app
        self.broker = broker
        self._settings = settings
        self._opened = ExitStack()
        self._senders: dict[type | Topic, Producer] = {}

    def producer(self, what: type | Topic, **options: Any) -> Producer:
        """Sends events of a class to its topic; options are those of `Producer`: spread, acks, linger, ..."""
        return self._opened.enter_context(Producer(self.broker, what, **options))

    def consumer(
        self, events: type[E] | list[type[E]], *, group: str, deliver: Deliver = "at-least-once", **options: Any
    ) -> Consumer[E]:
        """Reads events as a member of a group; more options are those of `Consumer`: member, commit, start, ..."""
        return self._opened.enter_context(
            Consumer(self.broker, events, group=group, deliver=deliver, app=self.app.name, **options)
        )

    def read(self, event: type[E]) -> Iterator[Record[E]]:
        """All events of a class that are on the log now, from the beginning, as no member of any group. What cannot be
        decoded is passed over: those who run on it have it as dead letters."""
        decoder = Decoder([event])
        for message in read(self.broker, event_type(event).topic):
            try:
                found = decoder.decode(message)
            except DataError:
                continue
            yield Record(found, message)

    def table(self, table: DeclaredTable | type[E]) -> Table[Any]:
        """The latest value per key, read from the beginning: `c.table(customers).get("u1")`, `.snapshot()`."""
        if isinstance(table, DeclaredTable) and table.read.changes:
            raise UsageError(
                f"{table.name} is a topic of changes",
                why="a program reads tables from compacted topics, which hold each row as it is",
                fix='let the app keep one: table.to(app.topic("...", compact=True))',
            )
        cls = table.event.cls if isinstance(table, DeclaredTable) else table
        return self._opened.enter_context(Table(self.broker, cls, app=self.app.name))

    def send(self, *events: Any) -> None:
        """Sends events and waits until they are safe. For many, a producer is faster: it waits once, at its end."""
        kinds = dict.fromkeys(type(event) for event in events)
        for kind in kinds:
            self._sender(kind).send_many(event for event in events if type(event) is kind)
        for kind in kinds:
            self._senders[kind].flush()

    def mark(self, what: type | Topic, at: datetime, *, partition: int | None = None) -> None:
        """Promises that nothing older than `at` follows in the topic of an event; see `Producer.mark`."""
        sender = self._sender(what)
        sender.mark(at, partition=partition)
        sender.flush()

    def policy(self, name: str) -> Policies:
        """The policy that streams are decided by: `c.policy("fraud").publish(rules=[...])`, `.current()`, `.history()`,
        `.rollback(to=4)`."""
        return self._opened.enter_context(Policies(self.app, name, self.broker))

    def query(self, sql: str) -> list[dict[str, Any]]:
        """Asks the lake in SQL: `c.query("select count(*) as n from lake.payments")`; one dict a row."""
        return list(query.query(self._settings, sql).rows)

    def features(self, features: Features | str) -> FeatureReader:
        """Features that an app declares, or this app by their name: `c.features(card).get(card_id="c1")`,
        `.as_of(...)`. Their rows are where that app or this one keeps them."""
        return self._opened.enter_context(found.reader(self.app, features, self._settings))

    def ahead(self, stream: Stream, *online: Features | DeclaredTable) -> Ahead:
        """Foretells a stream: `ahead = c.ahead(decisions, card, customers)`, and `ahead(payment)` is the row that it
        will have for that payment, as a dict. Features and tables that are given are read `online`, in one round trip;
        what others say is null."""
        from headrace.features.ahead import Ahead

        features, tables = {}, []
        for one in online:
            if isinstance(one, Features):
                features[one.name] = self.features(one).online
            elif isinstance(one, DeclaredTable):
                tables.append(self._opened.enter_context(closing(found.online_table(self.app, one, self._settings))))
            else:
                raise UsageError(
                    f"{one!r} is not read online",
                    why="features are, and tables of the log",
                    fix="c.ahead(stream, card, customers), each kept by .to(hr.redis(...))",
                )
        return Ahead(stream.node, features, tables)

    def close(self) -> None:
        self._opened.close()

    def _sender(self, what: type | Topic) -> Producer:
        if what not in self._senders:
            self._senders[what] = self.producer(what)
        return self._senders[what]

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Passed on, not just closed: a consumer commits what its block was given only when the block ended well.
        self._opened.__exit__(kind, error, trace)
