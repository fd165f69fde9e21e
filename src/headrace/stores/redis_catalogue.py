"""The catalogue of a Redis: which keys belong to which store, and what their values hold.

Redis itself knows neither tables nor columns, so `headrace_stores` does: a hash, with an entry for the words that all
keys of a store begin with. No two stores share them, because a rebuild removes all keys that begin so.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.json import decode, encode
from msgspec.structs import replace
from redis import Redis
from redis.client import Pipeline

from headrace.base.errors import StoreLost, TableMismatch, TableMissing
from headrace.expr.types import Columns
from headrace.model.target import FeatureRows, RedisKeys
from headrace.model.target import redis as declare

CATALOGUE = "headrace_stores"


class Entry(Struct, frozen=True, kw_only=True):
    """What is known of a store. `columns`: all it ever had, with their types; of features just those they have, by what
    they are in the row. `reach`, in seconds, and `rows`: how much of the past features have. `lost`: Redis came back
    without rows."""

    pattern: str
    columns: dict[str, str]
    features: bool = False
    reach: float = 0
    rows: int = 0
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
    client.hset(CATALOGUE, target.prefix, encode(replace(_new(target, columns), lost=True)))


def check_written(found: bytes, target: RedisKeys, columns: Columns) -> None:
    """Refuses to read features that nobody wrote, and whatever is other than this. `found`: the entry, or nothing. Rows
    that nobody wrote are none: so a flow begins with a table that is empty."""
    if not found and not isinstance(target, FeatureRows):
        return
    if not found:
        raise TableMissing(f"{target.label} has no features yet", why="no flow has written them",
                           fix="`headrace run` of the app that sends them there", where=target.where)  # fmt: skip
    entry = decode(found, type=Entry)
    _entry(target, columns, {target.prefix: entry})
    if entry.lost:
        raise StoreLost(f"{target.label} lost rows that were written", fix=f"`headrace rebuild {target.label}`")


def _new(target: RedisKeys, columns: Columns) -> Entry:
    if not isinstance(target, FeatureRows):
        return Entry(pattern=target.name, columns={column.name: str(column.type) for column in columns})
    words = dict(target.values)
    return Entry(
        pattern=target.name,
        columns={words.get(column.name, column.name): str(column.type) for column in columns},
        features=True,
        reach=target.reach.total_seconds(),
        rows=target.rows,
    )


def _entry(target: RedisKeys, columns: Columns, known: Mapping[str, Entry]) -> Entry:
    new = _new(target, columns)
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
        return new
    found = [
        f"{name} is {there.columns[name]} there, and {type} here"
        for name, type in new.columns.items()
        if there.columns.get(name, type) != type
    ]
    if there.pattern != target.name:
        found.append(f"its key is {', '.join(declare(there.pattern).key)} there, and {', '.join(target.key)} here")
    if there.features != new.features:
        found.append(f"they hold {_held(there)} there, and {_held(new)} here")
    elif new.features and list(there.columns) != list(new.columns):  # figures over old and new rows would be wrong
        found.append(f"they remember {', '.join(there.columns)} there, and {', '.join(new.columns)} here")
    elif new.reach > there.reach or new.rows > there.rows:
        found.append("they reach back further here than there")
    if found:
        raise TableMismatch(
            f"the keys {target.prefix}... cannot hold the rows of {target.label}",
            why="; ".join(found),
            fix=f"`headrace rebuild {target.label}` makes them anew out of the log; or begin with another word",
            where=target.where,
        )
    return replace(there, columns=there.columns | new.columns, reach=new.reach, rows=new.rows)


def _held(entry: Entry) -> str:
    return "features" if entry.features else "rows"
