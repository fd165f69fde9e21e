"""The store in PostgreSQL: a batch is one transaction, with a row in a ledger that says so.

`headrace_epochs` holds a number for each store and owner, raised by every driver that opens it. A transaction reads it
FOR SHARE first: no other driver can take over before it has ended. `headrace_ledger` holds the last batch of each flow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b

import psycopg
from psycopg import Connection
from psycopg.conninfo import conninfo_to_dict

from headrace.base.errors import StoreRefused, StoreUnreachable
from headrace.expr.types import Columns
from headrace.model.output import Guarantee
from headrace.model.target import PostgresTable
from headrace.stores import postgres_table
from headrace.stores.away import patiently
from headrace.stores.failpoint import reach
from headrace.stores.postgres_line import Line
from headrace.stores.postgres_rows import Rows, rows_of
from headrace.stores.store import Batch, Store, fenced

_BOOKS = """
    CREATE TABLE IF NOT EXISTS headrace_epochs
        (store text, owner text, epoch bigint NOT NULL, at timestamptz NOT NULL, PRIMARY KEY (store, owner));
    CREATE TABLE IF NOT EXISTS headrace_ledger
        (store text, flow text, batch bigint NOT NULL, at timestamptz NOT NULL, PRIMARY KEY (store, flow))"""
_TAKE = """
    INSERT INTO headrace_epochs AS known VALUES (%s, %s, 1, now())
    ON CONFLICT (store, owner) DO UPDATE SET epoch = known.epoch + 1, at = now() RETURNING epoch"""
_FENCE = "SELECT epoch FROM headrace_epochs WHERE store = %s AND owner = %s FOR SHARE"
_NOTE = """
    INSERT INTO headrace_ledger AS known VALUES (%s, %s, %s, now())
    ON CONFLICT (store, flow) DO UPDATE SET batch = excluded.batch, at = now() WHERE known.batch < excluded.batch"""
# A driver that was stopped inside a transaction would keep its locks for as long as it likes.
_END_OTHERS = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE starts_with(application_name, %s) AND pid <> pg_backend_pid()
    AND usename = current_user AND datname = current_database()"""
_ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtext('headrace'))"
_GONE = ("08", "57P", "25P03")
"""SQL states of a connection or a server that is gone; the last: we stood still in a transaction for too long."""
_PASSING = (*_GONE, "40", "55P03")
"""Those that pass by themselves: also a deadlock, and a lock that somebody else holds."""


class PostgresStore(Store):
    """A table whose rows replace each other by key; without a key rows are appended, with their id in `hr_id`."""

    def __init__(
        self, url: str, target: PostgresTable, columns: Columns, guarantee: Guarantee = "exactly-once"
    ) -> None:
        self._url = url
        self._target = target
        self._columns = columns
        self._guarantee = guarantee
        self._owner = ""
        self._epoch = 0
        self._line = Line(url)

    def open(self, owner: str) -> None:
        self.close()
        self._owner = owner
        with self._told("opened"):
            self._connected()  # who does not answer at the start is told at once
            patiently(self._take, _passes)

    def commit(self, batch: Batch) -> None:
        rows = rows_of(batch, self._target, self._columns)
        with self._told(f"given batch {batch.number}"):
            patiently(lambda: self._write(batch, rows), _passes)

    def drop(self) -> None:
        with self._told("dropped"):
            self._connected()
            patiently(self._remove, _passes)
        self.close()

    def close(self) -> None:
        self._line.close()

    def _take(self) -> None:
        connection = self._connected()
        connection.execute(_END_OTHERS, (self._called(self._owner),))
        with connection.transaction():
            connection.execute(_ONE_AT_A_TIME)
            connection.execute(_BOOKS)
            postgres_table.settle(connection, self._target, self._columns)
            taken = connection.execute(_TAKE, (self._target.label, self._owner)).fetchone()
            assert taken is not None
        (self._epoch,) = taken

    def _remove(self) -> None:
        label, connection = self._target.label, self._connected()
        connection.execute(_END_OTHERS, (self._called(""),))
        with connection.transaction():
            connection.execute(_ONE_AT_A_TIME)
            connection.execute(_BOOKS)
            if not postgres_table.drop(connection, self._target):
                raise StoreRefused(
                    f"the table {self._target.name} was not made by Headrace, and is not dropped",
                    why="it may hold more than the log can give back",
                    fix=f"if it does not: DROP TABLE {self._target.name}",
                )
            connection.execute("UPDATE headrace_epochs SET epoch = epoch + 1, at = now() WHERE store = %s", (label,))
            connection.execute("DELETE FROM headrace_ledger WHERE store = %s", (label,))

    # -- a batch

    def _write(self, batch: Batch, rows: Rows) -> None:
        connection = self._connected()
        if self._guarantee == "at-most-once":
            with connection.transaction():
                self._check_fence(connection)
                if not self._note(connection, batch):
                    return
        with connection.transaction():
            self._check_fence(connection)
            if self._guarantee == "exactly-once" and not self._note(connection, batch):
                return
            reach("postgres-before-rows", batch.number)
            rows.write(connection)
            reach("postgres-after-rows", batch.number)
        reach("postgres-after-commit", batch.number)

    def _check_fence(self, connection: Connection) -> None:
        if connection.execute(_FENCE, (self._target.label, self._owner)).fetchone() != (self._epoch,):
            raise fenced(self._target.label)

    def _note(self, connection: Connection, batch: Batch) -> bool:
        """Whether the batch is new."""
        return connection.execute(_NOTE, (self._target.label, batch.flow, batch.number)).rowcount == 1

    # -- the connection

    def _connected(self) -> Connection:
        return self._line.connected(self._called(self._owner))

    def _called(self, owner: str) -> str:
        """What PostgreSQL calls the session. It cuts names at 63 bytes, so they are hashed."""
        store = f"headrace {_hashed(self._target.label)}"
        return f"{store} {_hashed(owner)}" if owner else store

    @contextmanager
    def _told(self, done: str) -> Iterator[None]:
        """PostgreSQL's errors in our words."""
        try:
            with self._line.watched():
                yield
        except psycopg.Error as broken:
            if _passes(broken):
                gone = broken.sqlstate is None or broken.sqlstate.startswith(_GONE)
                raise StoreUnreachable(
                    f"PostgreSQL at {_place(self._url)} {'does not answer' if gone else 'waits for a lock'}",
                    why=_words(broken),
                    fix="start it: `headrace up` if it is the embedded one; the setting postgres.url says where it is",
                ) from broken
            raise StoreRefused(
                f"{self._target.label} could not be {done}: PostgreSQL at {_place(self._url)} refused",
                why=_words(broken),
                fix="correct what it says; nothing was written",
            ) from broken


def _passes(broken: Exception) -> bool:
    """Whether it may work in a moment. While a connection is being made, PostgreSQL gives its reasons only as text."""
    if isinstance(broken, psycopg.Error) and broken.sqlstate is not None:
        return broken.sqlstate.startswith(_PASSING)
    if not isinstance(broken, psycopg.OperationalError):
        return False
    said = str(broken)
    return "FATAL:" not in said or "the database system is" in said  # starting up, shutting down, in recovery


def _words(broken: psycopg.Error) -> str:
    """What the server said."""
    if broken.diag.message_primary:
        return " ".join(filter(None, (broken.diag.message_primary, broken.diag.message_detail, broken.diag.context)))
    if isinstance(broken, psycopg.ProgrammingError):  # its text may hold a piece of the password
        return "the URL cannot be read: write postgresql://user:password@host:port/database"
    fatal = re.search(r"FATAL:\s+(.*)", str(broken))
    return fatal.group(1) if fatal else " ".join(str(broken).split())


def _place(url: str) -> str:
    try:
        found = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        return "an address that cannot be read"
    return f"{found.get('host', 'localhost')}:{found.get('port', 5432)}"


def _hashed(text: str) -> str:
    return blake2b(text.encode(), digest_size=8).hexdigest()
