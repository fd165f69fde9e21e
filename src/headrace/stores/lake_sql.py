"""Questions to the lake in SQL, answered by DuckDB; nothing else on the machine can be read through them.

Two walls keep a question inside. DuckDB itself may open only files of the lake. Its Delta extension is not bound by
that: it reads logs by itself, from the network too. So a question may call no function that reads (question.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.base.errors import BadQuery
from headrace.stores import lake_tables
from headrace.stores.question import SCHEMA, tables_in, with_at

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_unsigned_extensions": True,
}
"""Nothing is fetched. The one extension comes with a package whose hash was checked when it was installed; to check its
80 MB again would take longer than most answers."""
AT_ONCE = 10_000
"""Rows that are taken from DuckDB at a time."""

# DuckDB cuts a long line at both ends.
_PLACE = re.compile(r"\n\n(?P<head>LINE \d+: (?:\.\.\.)?)(?P<shown>.*?)(?:\.\.\.)?\n(?P<before> *)\^")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The columns of a result, each with a name of its own, and its rows as they come."""

    columns: tuple[str, ...]
    rows: Iterator[dict[str, Any]]


def ask(lake: Path, sql: str) -> Answer:
    """The answer, from one version of each table, however much is written meanwhile."""
    import duckdb

    connection = duckdb.connect(config=CONFIG)
    try:
        sql = with_at(sql)
        names = tables_in(sql, lake_tables.names(lake), connection)
        _show(connection, lake, names)
        reader = connection.execute(sql).to_arrow_reader(AT_ONCE)
    except duckdb.Error as refused:
        connection.close()
        raise _told(refused, sql) from None
    except BaseException:
        connection.close()
        raise
    columns = _distinct(reader.schema.names)
    return Answer(columns=columns, rows=_rows(connection, reader, columns, sql))


def _show(connection: duckdb.DuckDBPyConnection, lake: Path, names: Sequence[str]) -> None:
    """Opens the tables for reading and shuts everything else."""
    connection.execute(f"create schema {SCHEMA}")
    if names:
        connection.execute(f"load {_text(_extension())}")
    for name in names:
        place, own = _text(str(lake / name)), _quoted(f"{name} in the lake")
        connection.execute(f"attach {place} as {own} (type delta, pin_snapshot, read_only)")
        connection.execute(f"create view {SCHEMA}.{_quoted(name)} as from {own}")
    connection.execute(f"set search_path = '{SCHEMA}'")
    connection.execute("set TimeZone = 'UTC'")
    connection.execute(f"set allowed_directories = [{_text(str(lake))}]")
    connection.execute("set enable_external_access = false")
    connection.execute("set lock_configuration = true")


def _extension() -> str:
    """The extension as its package brings it: nothing is fetched."""
    import duckdb

    within = files("duckdb_extension_delta") / "extensions" / f"v{duckdb.__version__}"
    return str(within / "delta.duckdb_extension")


def _rows(
    connection: duckdb.DuckDBPyConnection, reader: pa.RecordBatchReader, columns: tuple[str, ...], sql: str
) -> Iterator[dict[str, Any]]:
    import duckdb

    with closing(connection):
        try:
            for batch in reader:
                for values in zip(*(_values(column) for column in batch.columns), strict=True):
                    yield dict(zip(columns, values, strict=True))
        except (duckdb.Error, OSError) as failed:  # in the middle: a value that cannot be cast, a file that is gone
            raise _told(failed, sql) from None


def _values(column: pa.Array) -> list[Any]:
    """As Python has them. DuckDB's whole numbers of 128 bits, such as sums, come as decimals without digits after."""
    values: list[Any] = column.to_pylist()
    whole = getattr(column.type, "scale", None) == 0
    return [int(value) if whole and isinstance(value, Decimal) else value for value in values]


def _distinct(names: Sequence[str]) -> tuple[str, ...]:
    """`a, a` becomes `a, a_2`: rows are known by the names of their columns."""
    found: list[str] = []
    for name in names:
        number, own = 1, name
        while own in found:
            number += 1
            own = f"{name}_{number}"
        found.append(own)
    return tuple(found)


def _told(refused: Exception, sql: str) -> BadQuery:
    """DuckDB's words, with the place it points at."""
    words = str(refused)
    place = _PLACE.search(words)
    what = " ".join((words[: place.start()] if place else words).split()).partition(" Error: ")[2] or words
    return BadQuery(what, text=sql, span=_span(place, sql) if place else None)


def _span(place: re.Match[str], sql: str) -> tuple[int, int] | None:
    """Where in the question the word begins and ends that DuckDB points at."""
    start = sql.find(place["shown"])
    word = re.compile(r"\w+|.").match(sql, start + len(place["before"]) - len(place["head"]))
    return word.span() if word and start >= 0 else None


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
