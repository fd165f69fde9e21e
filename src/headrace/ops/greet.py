"""The smallest question of each part's own protocol: something listens, and it is what it should be."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from urllib.parse import urlsplit

from headrace.base.errors import HeadraceError
from headrace.log.broker import Broker

PATIENCE = 3.0
_SSL_REQUEST = bytes((0, 0, 0, 8)) + (80877103).to_bytes(4, "big")
"""PostgreSQL's first message: "do you speak TLS?"; every server says S or N before any password."""


def kafka(broker: Broker) -> str:
    """Why no broker answers; empty if every advertised address does."""
    try:
        broker.reach(within="5 s")
    except HeadraceError as broken:
        return f"{broken.what}: {broken.why}"
    return ""


def postgres(url: str) -> str:
    """Why no PostgreSQL answers; empty if one does. No password is tried."""
    return _ask(url, 5432, _SSL_REQUEST, lambda said: said[:1] in (b"S", b"N"), "PostgreSQL")


def redis(url: str) -> str:
    """Why no Redis answers; empty if one does. One that asks for a password first has answered."""
    return _ask(url, 6379, b"PING\r\n", lambda said: said.startswith((b"+PONG", b"-NOAUTH")), "Redis")


def place(url: str) -> str:
    """host:port of a URL, without user and password."""
    found = urlsplit(url)
    return f"{found.hostname or 'localhost'}:{found.port}" if found.port else found.hostname or "localhost"


def _ask(url: str, port: int, question: bytes, right: Callable[[bytes], bool], name: str) -> str:
    found = urlsplit(url)
    host = found.hostname or "localhost"
    try:
        with socket.create_connection((host, found.port or port), timeout=PATIENCE) as plain:
            secured = found.scheme == "rediss"
            channel = ssl.create_default_context().wrap_socket(plain, server_hostname=host) if secured else plain
            channel.sendall(question)
            said = channel.recv(64)
    except OSError as refused:
        return str(refused)
    return "" if right(said) else f"what listens there is no {name}: it said {said[:20]!r}"
