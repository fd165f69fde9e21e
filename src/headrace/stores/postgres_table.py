"""The table of a store in PostgreSQL: made when it is missing, grown by new columns, refused when it differs."""

from __future__ import annotations

from dataclasses import dataclass

from psycopg import Connection, sql

from headrace.base.errors import TableMismatch
from headrace.expr.types import BOOL, BYTES, FLOAT, INT, TEXT, TIME, Column, Columns, DecimalType, Type
from headrace.model.target import ROW_ID, PostgresTable

MADE = "Made by Headrace out of the log; `headrace rebuild` makes it anew."
"""The comment on our own tables: no other is ever dropped."""

_TYPES = {
    TEXT: "text",
    INT: "bigint",
    FLOAT: "double precision",
    BOOL: "boolean",
    TIME: "timestamp with time zone",
    BYTES: "bytea",
}
_COLUMNS = """
    SELECT attname, format_type(atttypid, atttypmod), attnotnull AND NOT atthasdef AND attidentity = ''
    FROM pg_attribute WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped"""
# Only indexes that ON CONFLICT can use.
_UNIQUE = """
    SELECT indisprimary, ARRAY(
        SELECT attname::text FROM unnest((indkey::int2[])[0:indnkeyatts - 1]) AS place
        JOIN pg_attribute ON attrelid = indrelid AND attnum = place)
    FROM pg_index WHERE indrelid = %s AND indisunique AND indimmediate AND indisvalid
    AND indpred IS NULL AND indexprs IS NULL"""


def identifier(target: PostgresTable) -> sql.Identifier:
    return sql.Identifier(*target.name.split("."))


def definitions(columns: Columns) -> sql.Composed:
    """Names and types. Only a key is NOT NULL, by its primary key: a column that new rows lack may then stay."""
    pairs = [(sql.Identifier(column.name), sql.SQL(_type(column.type))) for column in columns]
    return sql.SQL(", ").join(sql.SQL("{} {}").format(*pair) for pair in pairs)


def settle(connection: Connection, target: PostgresTable, columns: Columns) -> None:
    """Leaves a table that can hold the rows, or says how the one that is there differs."""
    there = _there(connection, target)
    stored = columns if target.key else (*columns, Column(ROW_ID, TEXT))
    if there is None:
        _make(connection, target, stored)
        return
    if differences := there.differences(target, stored):
        raise TableMismatch(
            f"the table {target.name} cannot hold the rows of {target.label}",
            why="; ".join(differences),
            fix=f"`headrace rebuild {target.label}` makes it anew out of the log; or write to another table",
            where=target.where,
        )
    for column in stored:
        if column.name not in there.types:
            grown = sql.SQL("ALTER TABLE {} ADD COLUMN {}")
            connection.execute(grown.format(identifier(target), definitions((column,))))


def drop(connection: Connection, target: PostgresTable) -> bool:
    """Whether it is gone now; a table that somebody else made stays."""
    if (oid := _oid(connection, target)) is None:
        return True
    comment = connection.execute("SELECT obj_description(%s, 'pg_class')", (oid,)).fetchone()
    if comment != (MADE,):
        return False
    connection.execute(sql.SQL("DROP TABLE {}").format(identifier(target)))
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class _There:
    """A table as it is."""

    types: dict[str, str]
    needed: frozenset[str]  # columns that every new row has to give
    primary: frozenset[str]
    unique: frozenset[frozenset[str]]

    def differences(self, target: PostgresTable, stored: Columns) -> list[str]:
        names = {column.name for column in stored}
        shared = [(column.name, _type(column.type)) for column in stored if column.name in self.types]
        found = [
            f"{name} is {self.types[name]} there, and {type} here" for name, type in shared if self.types[name] != type
        ]
        found += [f"{name} must not be null there, and is missing here" for name in sorted(self.needed - names)]
        primary = ", ".join(sorted(self.primary))
        if target.key and frozenset(target.key) not in self.unique:
            found.append(f"its key is {primary or 'none'} there, and {', '.join(target.key)} here")
        if not target.key and self.primary and self.primary <= names:
            found.append(f"its key is {primary} there, and here rows are appended")
        return found


def _there(connection: Connection, target: PostgresTable) -> _There | None:
    if (oid := _oid(connection, target)) is None:
        return None
    columns = connection.execute(_COLUMNS, (oid,)).fetchall()
    unique = connection.execute(_UNIQUE, (oid,)).fetchall()
    return _There(
        types={name: type for name, type, _ in columns},
        needed=frozenset(name for name, _, needed in columns if needed),
        primary=frozenset(name for primary, names in unique if primary for name in names),
        unique=frozenset(frozenset(names) for _, names in unique),
    )


def _oid(connection: Connection, target: PostgresTable) -> int | None:
    found = connection.execute("SELECT to_regclass(%s)::oid", (identifier(target).as_string(connection),)).fetchone()
    return found[0] if found else None


def _make(connection: Connection, target: PostgresTable, stored: Columns) -> None:
    parts = definitions(stored)
    if target.key:
        parts += sql.SQL(", PRIMARY KEY ({})").format(sql.SQL(", ").join(map(sql.Identifier, target.key)))
    connection.execute(sql.SQL("CREATE TABLE {} ({})").format(identifier(target), parts))
    connection.execute(sql.SQL("COMMENT ON TABLE {} IS {}").format(identifier(target), sql.Literal(MADE)))


def _type(type: Type) -> str:
    """As PostgreSQL itself writes it; a list is jsonb."""
    if isinstance(type, DecimalType):
        return f"numeric({type.precision},{type.scale})"
    return _TYPES.get(type, "jsonb")
