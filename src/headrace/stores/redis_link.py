"""A connection to Redis: how it is made, and what goes wrong with it in our words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from headrace.base.errors import StoreRefused, StoreUnreachable


def connect(url: str, label: str, *, timeout: float) -> redis.Redis:
    """Each call is made once: the client would try again by itself, and repeat one that may have been carried out."""
    how = {"socket_timeout": timeout, "socket_connect_timeout": 3, "retry": Retry(NoBackoff(), 0)}
    try:
        return redis.Redis.from_url(url, **how)
    except ValueError:  # its text may hold a piece of the password
        raise StoreRefused(
            f"{label} has no Redis",
            why="the URL cannot be read",
            fix="write redis://:password@host:port/0",
        ) from None


@contextmanager
def told(url: str, what: str, fix: str) -> Iterator[None]:
    """Redis's errors; `what` could not be done, and `fix` is to be done if it refused."""
    try:
        yield
    except redis.RedisError as broken:
        if passes(broken):
            raise StoreUnreachable(
                f"Redis at {place(url)} does not answer",
                why=str(broken),
                fix="start it: `headrace up` if it is the embedded one; the setting redis.url says where it is",
            ) from broken
        raise StoreRefused(f"{what}: Redis at {place(url)} refused", why=str(broken), fix=fix) from broken


def passes(broken: Exception) -> bool:
    """Whether it may work in a moment; a script that Redis has forgotten is loaded with the next connection."""
    refused = redis.AuthenticationError, redis.exceptions.AuthorizationError
    away = redis.ConnectionError, redis.TimeoutError, redis.exceptions.NoScriptError
    return isinstance(broken, away) and not isinstance(broken, refused)


def place(url: str) -> str:
    try:
        found = urlsplit(url)
        return f"{found.hostname or 'localhost'}:{found.port or 6379}"
    except ValueError:
        return "an address that cannot be read"
