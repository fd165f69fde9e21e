"""A line to PostgreSQL that ends when the server stands still.

A frozen server keeps its connections: the system beneath it answers every sign of life that TCP knows, and libpq waits
for ever. So while work takes long, the server is asked on another line whether it answers at all.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread

import psycopg
from psycopg import Connection

SILENCE = 10.0
"""Seconds of work after which the server is asked, again and again. A large batch may well take longer."""
_TO_CONNECT = 3
_SESSION = """
    SET timezone = 'UTC'; SET lock_timeout = '2s'; SET client_min_messages = 'warning';
    SET idle_in_transaction_session_timeout = '60s'"""


class Line:
    """One connection at a time, made when it is asked for."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: Connection | None = None
        self._socket: socket.socket | None = None

    def connected(self, name: str) -> Connection:
        """`name` is what PostgreSQL calls the session."""
        if self._connection is None or self._connection.closed:
            self.close()
            self._connection = psycopg.connect(
                self._url,
                autocommit=True,
                application_name=name,
                connect_timeout=_TO_CONNECT,
                keepalives_idle=5,
                keepalives_interval=2,
                keepalives_count=3,
                tcp_user_timeout=10_000,
            )
            # A handle of our own: libpq's number may be another file's by the time the line is cut.
            self._socket = socket.socket(fileno=os.dup(self._connection.pgconn.socket))
            self._connection.execute(_SESSION)
        return self._connection

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Whoever waits inside gets an OperationalError when the server stands still."""
        done = Event()

        def watch() -> None:
            while not done.wait(SILENCE):
                if not answers(self._url) and not done.is_set():
                    self._cut()

        Thread(target=watch, name="postgres line", daemon=True).start()
        try:
            yield
        finally:
            done.set()

    def _cut(self) -> None:
        if (line := self._socket) is not None:
            with suppress(OSError):  # it was closed meanwhile
                line.shutdown(socket.SHUT_RDWR)


def answers(url: str) -> bool:
    """Whether a server is there; one that turns us away is."""
    try:
        psycopg.connect(url, connect_timeout=_TO_CONNECT).close()
    except psycopg.OperationalError as refused:
        return "FATAL:" in str(refused)
    return True
