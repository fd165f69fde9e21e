"""The server: one service on one port, until it is told to stop and has answered everybody."""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn

from headrace.base.errors import PortBusy
from headrace.log.broker import Broker
from headrace.model.service import Service
from headrace.serve.desk import Desk, Speak
from headrace.serve.live import Live
from headrace.serve.web import Web

_KEEP_ALIVE = 75  # seconds; longer than a proxy in front keeps its side, so that it never writes to a closed one
_GRACE = 10  # seconds for requests that are in flight when it is told to stop


class Server:
    """Takes its port at once, and serves in `run`."""

    def __init__(
        self,
        service: Service,
        broker: Broker,
        *,
        key: str,
        host: str = "127.0.0.1",
        port: int = 0,
        speak: Speak | None = None,
    ) -> None:
        self._socket = _listen(host, port)
        self.address = f"http://{host}:{self._socket.getsockname()[1]}"
        self.desk = Desk(service, broker, speak=speak)
        self._broker, self._key = broker, key
        self._http: _Http | None = None

    def run(self, ready: Callable[[], None] = lambda: None, tell: Callable[[str], None] = lambda _: None) -> int:
        """Serves until SIGINT, SIGTERM or `stop`; until it is `ready`, `tell` is told what is waited for. Returns how
        many events the log does not have, although they were answered: the broker was away and did not come back."""
        try:
            return asyncio.run(self._run(ready, tell))
        finally:
            self._socket.close()

    def stop(self) -> None:
        """From any thread, or from a signal."""
        if self._http is not None:
            self._http.should_exit = True

    async def _run(self, ready: Callable[[], None], tell: Callable[[str], None]) -> int:
        live = Live(self.desk, self._broker)
        await self.desk.start(tell)
        try:
            await live.start()
            web = Web(self.desk, live, key=self._key, stopping=lambda: self._http is None or self._http.should_exit)
            self._http = _Http(
                uvicorn.Config(
                    web.app(),
                    log_config=None,
                    access_log=False,
                    lifespan="off",
                    server_header=False,
                    timeout_keep_alive=_KEEP_ALIVE,
                    timeout_graceful_shutdown=_GRACE,
                )
            )
            self._obey_signals()
            ready()
            await self._http.serve(sockets=[self._socket])
        finally:
            await live.stop()
            left = await self.desk.stop()
        return left

    def _obey_signals(self) -> None:
        if threading.current_thread() is threading.main_thread():
            for signum in (signal.SIGINT, signal.SIGTERM):
                asyncio.get_running_loop().add_signal_handler(signum, self.stop)


class _Http(uvicorn.Server):
    """Without its own signals: it would raise them again at its end, in the middle of ours."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _listen(host: str, port: int) -> socket.socket:
    try:
        listening = socket.create_server((host, port), backlog=512)
    except OSError as taken:
        raise PortBusy(
            f"cannot listen at {host}:{port}",
            why=taken.strerror or str(taken),
            fix="stop the other process, or choose another: --port 0 takes any that is free",
        ) from None
    # Connections inherit it. asyncio sets it only where a socket names its protocol, and this one does not: the second
    # packet of an answer would wait for the caller's delayed acknowledgement of the first, 40 ms.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening
