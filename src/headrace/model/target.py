"""Stores as declared: a table in PostgreSQL, keys or features in Redis, a table of the lake, Parquet files."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import timedelta

from headrace.base.duration import duration, show
from headrace.base.errors import BadStore
from headrace.base.where import Where, here
from headrace.expr.types import BOOL, INT, TEXT, TIME, Column, Columns, DecimalType, ListType, Type
from headrace.model.declaring import declaring

GONE, EVENT_TIME, ID = "_gone", "_time", "_id"
"""Columns that can stand beside a row's own on its way to a store."""
ROW_ID = "hr_id"
"""The column of a table without key that holds the stable id of a row (rule D2)."""

_LONGEST = 63
_NAME = re.compile(rf"[a-z_][a-z0-9_]{{0,{_LONGEST - 1}}}")
_OURS = "headrace_"
_PLACE = re.compile(r"\{([^{}]*)\}")
_PART = re.compile(r"(?:(year|month|day|hour)\(\s*(\w+)\s*\)|(\w+))")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What every store has: a name, the columns that a row is known by, and the user's own line."""

    name: str
    key: tuple[str, ...] = ()  # none: rows are appended
    where: Where | None = field(default=None, compare=False)

    KIND = ""

    @property
    def label(self) -> str:
        """What plans, errors and `headrace rebuild` call it."""
        return f"{self.KIND}:{self.name}"

    def meets(self, other: Target) -> bool:
        """Whether rows of both lie in one place."""
        return self.label == other.label

    @property
    def extra(self) -> tuple[str, ...]:
        """Which columns its rows have beside their own when they are staged (stores/staged.py)."""
        return (GONE, EVENT_TIME) if self.key else (ID,)

    def check(self, columns: Columns, where: Where | None) -> None:
        """Refuses rows of these columns if the store could not hold them; `where` is the line of the output."""
        by_name = {column.name: column for column in columns}
        for name in self.key:
            self._check_key(name, by_name.get(name), columns, where)
        for name in by_name:
            if name in (GONE, EVENT_TIME, ID, ROW_ID):
                raise BadStore(f"the column {name!r} cannot go to {self.label}",
                               why="Headrace writes a column of that name",
                               fix=f'rename it first: .select("..., {name} as ...")', where=where)  # fmt: skip

    def _check_key(self, name: str, found: Column | None, columns: Columns, where: Where | None) -> None:
        if found is None:
            raise BadStore(f"{self.label} has the key {name!r}, the rows have no such column",
                           why=f"they have {', '.join(column.name for column in columns)}",
                           fix="name columns of the rows, or .select(...) it first", where=where)  # fmt: skip
        if found.nullable:
            raise BadStore(f"{name} may be null, so it cannot be a key of {self.label}",
                           why="a row is found again by its key, and null equals nothing",
                           fix=f'filter first: .where("{name} is not null")', where=where)  # fmt: skip
        if isinstance(found.type, ListType):
            raise BadStore(f"{name} is a list, so it cannot be a key of {self.label}", fix="name another column",
                           where=where)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresTable(Target):
    """A table in PostgreSQL: rows replace each other by key, or without one are appended."""

    KIND = "postgres"

    def meets(self, other: Target) -> bool:
        """A table without a schema is in `public`, unless the server's search_path says otherwise."""
        return isinstance(other, PostgresTable) and self._bare == other._bare

    @property
    def _bare(self) -> str:
        return self.name.removeprefix("public.")

    def __post_init__(self) -> None:
        parts = self.name.split(".")
        if len(parts) > 2:
            raise BadStore(f"{self.name!r} cannot name a table", fix="write it like card_spend or sales.card_spend",
                           where=self.where)  # fmt: skip
        for part in parts:
            _check_name(part, self.where)

    def check(self, columns: Columns, where: Where | None) -> None:
        Target.check(self, columns, where)  # a class with slots is made anew, so super() would not know it
        for column in columns:
            if len(column.name.encode()) > _LONGEST:
                raise BadStore(f"the column {column.name} has too long a name for {self.label}",
                               why=f"PostgreSQL cuts names at {_LONGEST} bytes",
                               fix='.select("..., ... as short")', where=where)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisKeys(Target):
    """Keys in Redis: `name` is their pattern, its places are the columns a row is known by."""

    ttl: timedelta | None = None  # None: for ever

    KIND = "redis"

    @property
    def prefix(self) -> str:
        """What its keys begin with, and no others."""
        return self.name.split("{", 1)[0]

    def meets(self, other: Target) -> bool:
        """All keys that begin with a store's prefix are its own."""
        if not isinstance(other, RedisKeys):
            return False
        return self.prefix.startswith(other.prefix) or other.prefix.startswith(self.prefix)

    def __post_init__(self) -> None:
        if self.ttl is not None and self.ttl <= timedelta(0):
            raise BadStore(f"{self.label} would keep values for {show(self.ttl)}", why="a ttl is longer than nothing",
                           fix='leave ttl out to keep them for ever, or say ttl="30 d"', where=self.where)  # fmt: skip
        pieces = _PLACE.split(self.name)  # text, column, text, column, ..., text
        texts, places = pieces[::2], pieces[1::2]
        if not places or not all(place.isidentifier() for place in places) or set("".join(texts)) & set("{}"):
            raise BadStore(f"{self.name!r} is no pattern of keys", why="each row needs a key of its own",
                           fix='name columns in braces, like "spend:{card_id}"', where=self.where)  # fmt: skip
        if not all(texts[1:-1]):
            raise BadStore(f"{self.name!r} has two columns side by side", why="1 and 23 would make the key of 12 and 3",
                           fix="put a character between them", where=self.where)  # fmt: skip
        if texts[0][-1:].isalnum() or not texts[0] or texts[0].startswith(_OURS):
            raise BadStore(f"{self.name!r} begins with no word of its own",
                           why="all keys that begin so belong to the store; a rebuild removes them",
                           fix='begin with a word and a sign, like "spend:{card_id}"', where=self.where)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureRows(RedisKeys):
    """What features remember of their rows, in Redis: a sorted set for each key. `values`: the columns that are
    remembered, each with what it was in the row. `id`: the column by which a row that comes twice is
    known; none: it counts twice, as it does in the features. Rows are kept while somebody can ask for them who is not
    more than `lateness` behind the newest: those in `reach` of windows, and `rows` however old."""

    values: tuple[tuple[str, str], ...]
    id: str
    reach: timedelta
    lateness: timedelta
    rows: int

    @property
    def extra(self) -> tuple[str, ...]:
        return (EVENT_TIME, ID)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One level of a lake's directories: a column, or the year, month, day or hour of one."""

    column: str
    unit: str = ""  # empty: the value itself

    @property
    def name(self) -> str:
        """The column of the table that it goes by: `at_day` for day(at)."""
        return f"{self.column}_{self.unit}" if self.unit else self.column

    def __str__(self) -> str:
        return f"{self.unit}({self.column})" if self.unit else self.column


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeTable(Target):
    """A Delta table: rows are appended, or replace each other by key."""

    partition: tuple[Part, ...] = ()

    KIND = "lake"

    @property
    def extra(self) -> tuple[str, ...]:
        return (GONE, EVENT_TIME) if self.key else ()  # appended as they are: files are moved, not read

    def __post_init__(self) -> None:
        _check_name(self.name, self.where)

    def check(self, columns: Columns, where: Where | None) -> None:
        Target.check(self, columns, where)
        by_name = {column.name: column for column in columns}
        for part in self.partition:
            found = by_name.get(part.column)
            if found is None or not _divides(part, found.type):
                has = "the rows have no such column" if found is None else f"which is {found.type}"
                raise BadStore(f"{self.label} is partitioned by {part}, {has}",
                               why="it can be text, an exact number, bool, or the year, month, day or hour of a time",
                               fix='partition="day(at)"', where=where)  # fmt: skip
            if part.unit and part.name in by_name:
                raise BadStore(f"{self.label} is partitioned by {part}, and the rows have a column {part.name}",
                               why="the table keeps the partition in a column of that name",
                               fix=f'rename it first: .select("..., {part.name} as ...")', where=where)  # fmt: skip
            if self.key and part.column not in self.key:
                raise BadStore(f"{self.label} is partitioned by {part.column}, which is not in its key",
                               why="a row of the same key could come in another partition, and be there twice",
                               fix=f"add {part.column} to the key, or leave partition out", where=where)  # fmt: skip
            if self.key and found.type == TEXT:
                raise BadStore(f"{self.label} has a key, and is partitioned by the text {part.column}",
                               why="Delta takes an empty text there for null, and would not find the row again",
                               fix="partition by a time or a number, or leave partition out", where=where)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetFiles(Target):
    """Plain Parquet files in a directory: rows are appended."""

    KIND = "files"

    def __post_init__(self) -> None:
        _check_name(self.name, self.where)


@declaring('hr.postgres("card_spend", key="card_id, window_start")')
def postgres(table: str, *, key: str | None = None) -> PostgresTable:
    """A table in PostgreSQL, made when it is missing. With a key a row replaces the one before it; without, rows are
    appended, with their stable id in the column `hr_id`.

    >>> postgres("card_spend", key="card_id, window_start").key
    ('card_id', 'window_start')
    """
    place = here()
    return PostgresTable(name=table, key=_names(key, place), where=place)


@declaring('hr.redis("spend:{card_id}", ttl="30 d")')
def redis(pattern: str, *, ttl: str | timedelta | None = None) -> RedisKeys:
    """Keys in Redis, one for each row: `GET spend:c1` gives the row as JSON.

    >>> redis("spend:{card_id}:{day}").key
    ('card_id', 'day')
    """
    place = here()
    kept = None if ttl is None else duration(ttl)
    return RedisKeys(name=pattern, key=tuple(_PLACE.findall(pattern)), ttl=kept, where=place)


@declaring('hr.lake("payments", partition="day(at)")')
def lake(table: str, *, partition: str | None = None, key: str | None = None) -> LakeTable:
    """A table of the lake (Delta): rows are appended; with a key a row replaces the one before it.

    >>> lake("payments", partition="day(at)").partition
    (Part(column='at', unit='day'),)
    """
    place = here()
    return LakeTable(name=table, key=_names(key, place), partition=_parts(partition, place), where=place)


@declaring('hr.files("payments")')
def files(name: str) -> ParquetFiles:
    """Plain Parquet files, one directory a name."""
    return ParquetFiles(name=name, where=here())


def _divides(part: Part, type: Type) -> bool:
    """Whether a table can be partitioned by this: a value that has one form as text."""
    return type == TIME if part.unit else type in (TEXT, INT, BOOL, TIME) or isinstance(type, DecimalType)


def _check_name(name: str, where: Where | None) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name.startswith(_OURS):
        raise BadStore(
            f"{name!r} cannot name a table",
            why="names are 1 to 63 of the letters a-z, digits and _, so that SQL needs no quotes; "
            f"{_OURS}... are Headrace's own",
            fix='write it like "card_spend"',
            where=where,
        )


def _names(text: str | None, where: Where | None) -> tuple[str, ...]:
    if text is None:
        return ()
    names = tuple(name.strip() for name in text.split(","))
    if not all(name.isidentifier() for name in names) or len(set(names)) < len(names):
        raise BadStore(f"{text!r} is no key", why="a key is one or several columns, each once",
                       fix='write it like "card_id, window_start"', where=where)  # fmt: skip
    return names


def _parts(text: str | None, where: Where | None) -> tuple[Part, ...]:
    if text is None:
        return ()
    found = [_PART.fullmatch(part.strip()) for part in text.split(",")]
    if not all(found):
        raise BadStore(f"{text!r} is no partition", why="it is columns, or the year, month, day or hour of a time",
                       fix='write it like "day(at)" or "country, day(at)"', where=where)  # fmt: skip
    return tuple(Part(column=part[2] or part[3], unit=part[1] or "") for part in found if part)
