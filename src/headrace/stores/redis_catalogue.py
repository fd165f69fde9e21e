"""The catalogue of a Redis: which keys belong to which store, and what their values hold.

Redis itself knows neither tables nor columns, so `headrace_stores` does: a hash, with an entry for the words that all
keys of a store begin with. No two stores share them, because a rebuild removes all keys that begin so.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.json import decode, encode
from redis import Redis
from redis.client import Pipeline

from headrace.base.errors import TableMismatch
from headrace.expr.types import Columns
from headrace.model.target import RedisKeys
from headrace.model.target import redis as declare

CATALOGUE = "headrace_stores"


class Entry(Struct, frozen=True, kw_only=True):
    """What is known of a store. `columns`: all it ever had, with their types. `lost`: Redis came back without rows."""

    pattern: str
    columns: dict[str, str]
    lost: bool = False


def settle(client: Redis, target: RedisKeys, columns: Columns) -> None:
    """Enters the store, or says how what is entered differs; nobody can come in between."""

    def change(pipe: Pipeline) -> None:
        entries: dict[bytes, bytes] = pipe.hgetall(CATALOGUE)  # type: ignore[assignment]
        known = {key.decode(): decode(entry, type=Entry) for key, entry in entries.items()}
        entry = _entry(target, columns, known)
        pipe.multi()
        pipe.hset(CATALOGUE, target.prefix, encode(entry))

    client.transaction(change, CATALOGUE)


def is_lost(client: Redis, target: RedisKeys) -> bool:
    found = client.hget(CATALOGUE, target.prefix)
    return found is not None and decode(found, type=Entry).lost


def mark_lost(client: Redis, target: RedisKeys, columns: Columns) -> None:
    """Until somebody rebuilds it."""
    lost = Entry(pattern=target.name, columns={column.name: str(column.type) for column in columns}, lost=True)
    client.hset(CATALOGUE, target.prefix, encode(lost))


def _entry(target: RedisKeys, columns: Columns, known: Mapping[str, Entry]) -> Entry:
    here = {column.name: str(column.type) for column in columns}
    for prefix, other in known.items():
        if prefix != target.prefix and (prefix.startswith(target.prefix) or target.prefix.startswith(prefix)):
            raise TableMismatch(
                f"the keys of {target.label} could be those of redis:{other.pattern}",
                why="they begin with the same words, and a rebuild of one would remove the other",
                fix="begin with another word",
                where=target.where,
            )
    there = known.get(target.prefix)
    if there is None:
        return Entry(pattern=target.name, columns=here)
    found = [
        f"{name} is {there.columns[name]} there, and {type} here"
        for name, type in here.items()
        if there.columns.get(name, type) != type
    ]
    if there.pattern != target.name:
        found.append(f"its key is {', '.join(declare(there.pattern).key)} there, and {', '.join(target.key)} here")
    if found:
        raise TableMismatch(
            f"the keys {target.prefix}... cannot hold the rows of {target.label}",
            why="; ".join(found),
            fix=f"`headrace rebuild {target.label}` makes them anew out of the log; or begin with another word",
            where=target.where,
        )
    return Entry(pattern=target.name, columns=there.columns | here, lost=there.lost)
