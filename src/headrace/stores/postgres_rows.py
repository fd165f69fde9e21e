"""Rows of a batch on their way into a table of PostgreSQL: copied beside it, then inserted, replaced and deleted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from io import BytesIO

import pyarrow as pa
import pyarrow.compute as pc
from psycopg import Connection, sql
from pyarrow import csv

from headrace.expr.types import BOOL, BYTES, TEXT, TIME, Column, Columns, ListType, Type
from headrace.model.target import GONE, ID, ROW_ID, PostgresTable
from headrace.stores import staged, wire
from headrace.stores.postgres_table import definitions, identifier
from headrace.stores.store import Batch

_STAGED = sql.Identifier("headrace_staged")
_GONE, _ID, _ROW_ID = sql.Identifier(GONE), sql.Identifier(ID), sql.Identifier(ROW_ID)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Rows as COPY takes them, and what is to be done with them."""

    target: PostgresTable
    columns: Columns
    text: bytes
    some_stay: bool = True
    some_go: bool = False

    def write(self, connection: Connection) -> None:
        """Inside a transaction."""
        self._copy(connection)
        if not self.target.key:
            connection.execute(self._appended())
        if self.target.key and self.some_stay:
            connection.execute(self._upserted())
        if self.some_go:
            connection.execute(self._deleted())

    def _copy(self, connection: Connection) -> None:
        """Into a temporary table that the connection keeps: one for each batch would swell the catalogue."""
        beside = Column(GONE, BOOL) if self.target.key else Column(ID, TEXT)
        made = sql.SQL("CREATE TEMPORARY TABLE IF NOT EXISTS {} ({}) ON COMMIT DELETE ROWS")
        connection.execute(made.format(_STAGED, definitions((*self.columns, beside))))
        with (
            connection.cursor() as cursor,
            cursor.copy(sql.SQL("COPY {} FROM STDIN (FORMAT csv)").format(_STAGED)) as copy,
        ):
            copy.write(self.text)

    def _appended(self) -> sql.Composed:
        names = _names(column.name for column in self.columns)
        text = sql.SQL("INSERT INTO {} ({}, {}) SELECT {}, {} FROM {}")
        return text.format(identifier(self.target), names, _ROW_ID, names, _ID, _STAGED)

    def _upserted(self) -> sql.Composed:
        names = _names(column.name for column in self.columns)
        rest = [column.name for column in self.columns if column.name not in self.target.key]
        text = sql.SQL("INSERT INTO {} ({}) SELECT {} FROM {} WHERE NOT {} ON CONFLICT ({}) DO ")
        upserted = text.format(identifier(self.target), names, names, _STAGED, _GONE, _names(self.target.key))
        if not rest:
            return upserted + sql.SQL("NOTHING")
        return upserted + sql.SQL("UPDATE SET {}").format(_pairs(", ", "{0} = excluded.{0}", rest))

    def _deleted(self) -> sql.Composed:
        text = sql.SQL("DELETE FROM {} AS t USING {} AS s WHERE s.{} AND {}")
        same = _pairs(" AND ", "t.{0} = s.{0}", self.target.key)
        return text.format(identifier(self.target), _STAGED, _GONE, same)


def rows_of(batch: Batch, target: PostgresTable, columns: Columns) -> Rows:
    names = [column.name for column in columns]
    if not target.key:
        found = staged.read(batch.files, target, columns)
        return Rows(target=target, columns=columns, text=_csv(found.select([*names, ID]), columns))
    found = staged.latest(batch.files, target, columns)
    gone = pc.sum(found[GONE]).as_py()
    return Rows(
        target=target,
        columns=columns,
        text=_csv(found.select([*names, GONE]), columns),
        some_stay=gone < len(found),
        some_go=gone > 0,
    )


def _csv(rows: pa.Table, columns: Columns) -> bytes:
    """Arrow puts all text in quotes, and null in none: so "" and null stay apart, as COPY reads them."""
    for place, column in enumerate(columns):
        rows = rows.set_column(place, column.name, _copied(rows[column.name], column.type))
    written = BytesIO()
    csv.write_csv(rows, written, csv.WriteOptions(include_header=False))
    return written.getvalue()


def _copied(column: pa.ChunkedArray, type: Type) -> pa.ChunkedArray | pa.Array:
    """What Arrow does not write as PostgreSQL reads it; the session's zone is UTC."""
    if type == TIME:
        return wire.without_zone(column)
    if type == BYTES:
        return pa.array([None if one is None else rf"\x{one.hex()}" for one in column.to_pylist()], pa.string())
    if isinstance(type, ListType):
        lists = wire.values(column, type)
        return pa.array([None if one is None else wire.json(one).decode() for one in lists], pa.string())
    return column


def _names(names: Iterable[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, names))


def _pairs(between: str, pair: str, names: Iterable[str]) -> sql.Composed:
    return sql.SQL(between).join(sql.SQL(pair).format(sql.Identifier(name)) for name in names)
