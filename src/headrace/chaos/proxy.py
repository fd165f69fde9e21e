"""A door in front of the broker: it passes on what clients and broker say, can cut every connection, and can lose the
answer to a commit.

It knows of Kafka's protocol only how a message is framed: four bytes of size; then, for a request, two bytes that name
its kind, two of version and four by which its answer is known; for an answer these four alone.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from struct import unpack

from headrace.stack.part import LOOPBACK

END_TRANSACTION = 26
"""The kind of request that commits, or aborts, a transaction."""
_PIECE = 1 << 16


class Proxy:
    """Listens on a port of its own; each connection is passed on to the broker's."""

    def __init__(self) -> None:
        self._door = socket.create_server((LOOPBACK, 0))
        self.port: int = self._door.getsockname()[1]
        self.broker_port = 0
        self._open: set[_Passage] = set()
        self._alone = threading.Lock()
        self._lost: Callable[[], None] | None = None
        threading.Thread(target=self._accept, name="proxy", daemon=True).start()

    def cut(self) -> int:
        """Ends every connection at once; how many there were."""
        with self._alone:
            ended = list(self._open)
        for passage in ended:
            passage.end()
        return len(ended)

    def lose_commit(self, then: Callable[[], None]) -> None:
        """The next commit reaches the broker, but its answer is lost with the connection; `then` is called at once."""
        self._lost = then

    def close(self) -> None:
        with suppress(OSError):
            self._door.shutdown(socket.SHUT_RDWR)  # closing alone would leave it waiting for the next client
        self._door.close()
        self.cut()

    def loses(self) -> Callable[[], None] | None:
        """Asked about each commit: what to do when its answer is lost, once."""
        with self._alone:
            chosen, self._lost = self._lost, None
            return chosen

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._door.accept()
            except OSError:
                return  # closed
            try:
                broker = socket.create_connection((LOOPBACK, self.broker_port), timeout=5)
            except OSError:
                client.close()  # the broker is down: the client hears so at once
                continue
            for end in (client, broker):
                end.settimeout(None)
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            passage = _Passage(self, client, broker)
            with self._alone:
                self._open.add(passage)
            passage.start()

    def forget(self, passage: _Passage) -> None:
        with self._alone:
            self._open.discard(passage)


class _Passage:
    """One connection, a thread for each direction."""

    def __init__(self, proxy: Proxy, client: socket.socket, broker: socket.socket) -> None:
        self._proxy, self._client, self._broker = proxy, client, broker
        self._lost: dict[bytes, Callable[[], None]] = {}  # by the four bytes that the answer is known by

    def start(self) -> None:
        asking = threading.Thread(target=self._until_its_end, args=(self._requests,), daemon=True)
        asking.start()
        threading.Thread(target=self._answer, args=(asking,), daemon=True).start()

    def end(self) -> None:
        """Both directions notice."""
        for end in (self._client, self._broker):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _until_its_end(self, passing: Callable[[], None]) -> None:
        with suppress(OSError, EOFError):
            passing()
        self.end()

    def _answer(self, asking: threading.Thread) -> None:
        self._until_its_end(self._answers)
        asking.join()
        self._client.close()
        self._broker.close()
        self._proxy.forget(self)

    def _requests(self) -> None:
        while True:
            head = _exactly(self._client, 12)
            size, kind = unpack(">ih", head[:6])
            if kind == END_TRANSACTION and (then := self._proxy.loses()) is not None:
                self._lost[head[8:]] = then
            self._broker.sendall(head)
            _pass(self._client, self._broker, size - 8)

    def _answers(self) -> None:
        while True:
            head = _exactly(self._broker, 8)
            (size,) = unpack(">i", head[:4])
            if (then := self._lost.pop(head[4:], None)) is not None:
                then()
                return
            self._client.sendall(head)
            _pass(self._broker, self._client, size - 4)


def _exactly(end: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        piece = end.recv(count - len(found))
        if not piece:
            raise EOFError
        found += piece
    return found


def _pass(one: socket.socket, other: socket.socket, count: int) -> None:
    while count:
        piece = one.recv(min(count, _PIECE))
        if not piece:
            raise EOFError
        other.sendall(piece)
        count -= len(piece)
