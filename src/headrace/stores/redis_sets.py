"""Features in Redis: for each key a sorted set of the rows that are remembered of it, and how they are read again.

A member is a row as JSON, [time, id as text, value, ...]; its score is its time, by which Redis orders and trims. Times
are micros, and a score holds them exactly until 2255. A row that is written again is the same member, and changes
nothing.

    > ZRANGE card:c1 0 -1
    [1793700000000000,"p1","12.50","CH"]
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from itertools import groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa
from msgspec.json import Decoder
from msgspec.msgpack import encode
from redis import Redis

from headrace.base.clock import MICROSECOND, micros
from headrace.base.keys import value_text
from headrace.expr.types import TIME, Columns, ListType, Type
from headrace.model.output import Guarantee
from headrace.model.target import EVENT_TIME, ID, FeatureRows
from headrace.stores import redis_catalogue, redis_link, staged, wire
from headrace.stores.redis import RedisStore
from headrace.stores.redis_rows import PIECE, key_texts
from headrace.stores.redis_scripts import ADD, READ
from headrace.stores.store import Batch

Member = list[Any]
"""A remembered row: time, id, values."""

_TIMEOUT = 1.0
_AT_ONCE = 50
"""Sets that are read in one go: Redis does nothing else meanwhile."""
_decode = Decoder(list[Member]).decode


class RedisSets(RedisStore):
    """`ZRANGE card:c1 0 -1` gives the rows that are remembered of the card."""

    WRITE = ADD

    def __init__(self, url: str, target: FeatureRows, columns: Columns, guarantee: Guarantee = "exactly-once") -> None:
        super().__init__(url, target, columns, guarantee)
        self._rows = target
        self._keep = (*self._keep, _micros(target.reach), _micros(target.lateness), target.rows)

    def _pieces(self, batch: Batch) -> list[bytes]:
        return pieces_of(batch, self._rows, self._columns)


class SetReader:
    """Reads the sets of keys, of one store or of several that share their keys; threads may share it."""

    def __init__(self, url: str, sets: Sequence[tuple[FeatureRows, Columns]], client: Redis | None = None) -> None:
        self._url = url
        self._sets = sets
        self._label = sets[0][0].label
        self._client = client or redis_link.connect(url, self._label, timeout=_TIMEOUT)
        self._prefixes = [target.prefix for target, _ in sets]
        self._checked: list[bytes] = []

    def read(self, keys: Sequence[Sequence[Any]]) -> list[tuple[list[Member], ...]]:
        """For each key its members in every store, by time, all in one round trip. A key is the values of its columns,
        in the order of the pattern."""
        values = [list(column) for column in zip(*keys, strict=True)]
        named = zip(*(key_texts(target.name, values) for target, _ in self._sets), strict=True)
        found = self._members([name for of_key in named for name in of_key])
        return list(zip(*[iter(found)] * len(self._sets), strict=True))

    def read_each(self, keys: Sequence[Sequence[Any]]) -> list[list[Member]]:
        """Of each store the members of a key of its own, all in one round trip."""
        named = zip(self._sets, keys, strict=True)
        return self._members([key_texts(target.name, [[one] for one in key])[0] for (target, _), key in named])

    def beside(self, *others: SetReader) -> SetReader:
        """A reader of the stores of all of them, over this connection; they are in one Redis."""
        return SetReader(self._url, [one for reader in (self, *others) for one in reader._sets], self._client)

    def _members(self, names: list[str]) -> list[list[Member]]:
        with redis_link.told(self._url, f"{self._label} could not be read", "correct what it says"):
            found: list[list[Member]] = []
            for answer in self._answers(names):
                self._check(answer[: len(self._sets)])
                found += map(_decode, answer[len(self._sets) :])
            return found

    def _answers(self, names: list[str]) -> list[list[bytes]]:
        """What the script says, of some sets at a time."""
        if len(names) <= _AT_ONCE:  # a pipeline takes longer to make than to use
            return [self._client.eval(READ, len(names) + 1, redis_catalogue.CATALOGUE, *names, *self._prefixes)]
        pipe = self._client.pipeline(transaction=False)
        for at in range(0, len(names), _AT_ONCE):
            some = names[at : at + _AT_ONCE]
            pipe.eval(READ, len(some) + 1, redis_catalogue.CATALOGUE, *some, *self._prefixes)
        return pipe.execute()

    def _check(self, entries: list[bytes]) -> None:
        """With every answer: a flow may have written other rows since."""
        if entries != self._checked:
            for entry, (target, columns) in zip(entries, self._sets, strict=True):
                redis_catalogue.check_written(entry, target, columns)
            self._checked = entries

    def close(self) -> None:
        self._client.close()


def pieces_of(batch: Batch, target: FeatureRows, columns: Columns) -> list[bytes]:
    """All rows in pieces, each a MessagePack list of key, [time, member, time, member, ...], key, ..."""
    found = staged.read(batch.files, target, columns)
    written = {column.name: _values(found[column.name], column.type) for column in columns}
    times, ids = found[EVENT_TIME].to_pylist(), found[target.id or ID].to_pylist()
    values = zip(times, map(value_text, ids), *(written[name] for name, _ in target.values), strict=True)
    types = {column.name: column.type for column in columns}
    keys = key_texts(target.name, [wire.values(found[name], types[name]) for name in target.key])
    rows = sorted(zip(keys, times, (wire.json(row).decode() for row in values), strict=True), key=itemgetter(0))
    return [_piece(rows[at : at + PIECE]) for at in range(0, len(rows), PIECE)]


def _piece(rows: Sequence[tuple[str, int, str]]) -> bytes:
    flat: list[Any] = []
    for key, own in groupby(rows, itemgetter(0)):
        flat += [key, [one for _, time, member in own for one in (time, member)]]
    return encode(flat)


def _values(column: pa.ChunkedArray, type: Type) -> list[Any]:
    """In the wire form, but times as micros: they are counted with, not looked at."""
    if type == TIME:
        return column.cast(pa.int64()).to_pylist()  # type: ignore[no-any-return]
    if isinstance(type, ListType) and type.item == TIME:
        return [None if some is None else [micros(one) for one in some] for some in column.to_pylist()]
    return wire.values(column, type)


def _micros(value: timedelta) -> int:
    return value // MICROSECOND
