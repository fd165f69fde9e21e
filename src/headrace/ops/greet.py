"""The smallest question to a part in its own protocol: something listens, is what it should be, and lets us in."""

from __future__ import annotations

from urllib.parse import urlsplit

from headrace.base.errors import BrokerRefused, HeadraceError
from headrace.log.broker import Broker
from headrace.stack import answer
from headrace.stack.answer import Answer


def kafka(broker: Broker) -> Answer:
    """Whether every address that the brokers advertise answers."""
    try:
        broker.reach(within="5 s")
    except BrokerRefused as refused:
        return Answer("refused", refused.why)
    except HeadraceError as broken:
        return Answer("silent", f"{broken.what}: {broken.why}")
    return Answer("running")


def database(part: str, url: str) -> Answer:
    return answer.postgres(url) if part == "postgres" else answer.redis(url)


def place(url: str) -> str:
    """host:port of a URL, without user and password; nothing of one in which they cannot be told apart."""
    who, _, where = urlsplit(url).netloc.rpartition("@")
    return "?" if "@" in url and not who else where or "localhost"
