"""Asking a database by its URL: whether one answers there, and lets us in."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

PATIENCE = 3  # seconds


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back; `refused`: something answers, and does not let us in. `why` never holds a password."""

    state: Literal["running", "silent", "refused"]
    why: str = ""


def postgres(url: str) -> Answer:
    """One query, with the credentials of the URL."""
    import psycopg

    try:
        with psycopg.connect(url, connect_timeout=PATIENCE) as connection:
            connection.execute("SELECT 1")
    except psycopg.OperationalError as broken:
        said = str(broken)
        if fatal := re.search(r"FATAL:\s+(.*)", said):  # the server's own words
            return Answer("refused", fatal.group(1))
        if "invalid response to SSL negotiation" in said:
            return Answer("silent", "what listens there is no PostgreSQL")
        return Answer("silent", said.strip().splitlines()[-1].strip())
    except psycopg.ProgrammingError:  # its text may hold a piece of the password
        return Answer("silent", "the URL cannot be read: write postgresql://user:password@host:port/database")
    return Answer("running")


def redis(url: str) -> Answer:
    """One PING, with the credentials of the URL."""
    import redis as client
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    # Once: the client would try again by itself, seconds later, also after a wrong password.
    how = {"socket_timeout": PATIENCE, "socket_connect_timeout": PATIENCE, "retry": Retry(NoBackoff(), 0)}
    try:
        with client.Redis.from_url(url, **how) as connection:
            connection.ping()
    except client.exceptions.InvalidResponse:
        return Answer("silent", "what listens there is no Redis")
    except client.RedisError as broken:
        refused = isinstance(broken, client.AuthenticationError | client.exceptions.NoPermissionError)
        return Answer("refused" if refused else "silent", str(broken))
    except ValueError:
        return Answer("silent", "the URL cannot be read: write redis://user:password@host:port/0")
    return Answer("running")
