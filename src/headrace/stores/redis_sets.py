"""Features in Redis: for each key a sorted set of the rows that are remembered of it.

A member is a row as JSON, [time, id as text, value, ...]; its score is its time, by which Redis orders and trims. Times
are micros, and a score holds them exactly until 2255. A row that is written again is the same member, and changes
nothing. They are read by stores/redis_reader.py.

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
from msgspec.msgpack import encode

from headrace.base.clock import MICROSECOND, micros
from headrace.base.keys import value_text
from headrace.expr.types import TIME, Columns, ListType, Type
from headrace.model.output import Guarantee
from headrace.model.target import EVENT_TIME, ID, FeatureRows
from headrace.stores import staged, wire
from headrace.stores.redis import RedisStore
from headrace.stores.redis_rows import PIECE, key_texts
from headrace.stores.redis_scripts import ADD
from headrace.stores.store import Batch


class RedisSets(RedisStore):
    """`ZRANGE card:c1 0 -1` gives the rows that are remembered of the card."""

    WRITE = ADD

    def __init__(self, url: str, target: FeatureRows, columns: Columns, guarantee: Guarantee = "exactly-once") -> None:
        super().__init__(url, target, columns, guarantee)
        self._rows = target
        self._keep = (*self._keep, _micros(target.reach), _micros(target.lateness), target.rows)

    def _pieces(self, batch: Batch) -> list[bytes]:
        return pieces_of(batch, self._rows, self._columns)


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
