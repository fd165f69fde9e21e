"""One request of Kafka's protocol by hand, to ask a broker whether it serves (the real client lives in `log/`)."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass

_METADATA, _VERSION = 3, 2  # version 2 is the first that names the cluster
_CLIENT = b"headrace-stack"


@dataclass(frozen=True, slots=True)
class Cluster:
    """What a broker knows of its cluster: its id and the brokers that are not fenced."""

    id: str
    brokers: frozenset[int]


def ask(host: str, port: int, timeout: float = 1.0) -> Cluster | None:
    """The broker's answer to a metadata request without topics; None if it does not answer, or not in full."""
    header = struct.pack(">hhih", _METADATA, _VERSION, 1, len(_CLIENT)) + _CLIENT
    request = header + struct.pack(">i", 0)
    try:
        with socket.create_connection((host, port), timeout) as connection:
            connection.sendall(struct.pack(">i", len(request)) + request)
            with connection.makefile("rb") as stream:
                (size,) = struct.unpack(">i", stream.read(4))
                return _cluster(stream.read(size))
    except (OSError, struct.error):
        return None


def _cluster(answer: bytes) -> Cluster:
    """correlation id, brokers [id, host, port, rack or null], cluster id or null, ..."""
    at = 4
    (count,) = struct.unpack_from(">i", answer, at)
    at += 4
    brokers = set()
    for _ in range(count):
        (broker,) = struct.unpack_from(">i", answer, at)
        brokers.add(broker)
        _, at = _text(answer, at + 4)
        _, at = _text(answer, at + 4)
    name, _ = _text(answer, at)
    return Cluster(name, frozenset(brokers))


def _text(answer: bytes, at: int) -> tuple[str, int]:
    (size,) = struct.unpack_from(">h", answer, at)
    end = at + 2 + max(size, 0)  # null has size -1
    return answer[at + 2 : end].decode(), end
