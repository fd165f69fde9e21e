"""Rows that a user gives or gets: dicts or Arrow, with the columns that a question needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headrace.base.errors import BadTime, UsageError
from headrace.expr.types import Columns
from headrace.features.offline import Ask
from headrace.model.featured import Featured
from headrace.stores import arrow

if TYPE_CHECKING:
    import pyarrow as pa


def table_of(rows: pa.Table | Iterable[Mapping[str, Any]]) -> pa.Table:
    import pyarrow as pa

    return rows if isinstance(rows, pa.Table) else pa.Table.from_pylist([dict(row) for row in rows])


def asks_of(rows: pa.Table, node: Featured, time: str, id: str | None) -> list[Ask]:
    """The question that each row asks: its key, its time and, if that has a column, its id."""
    import pyarrow as pa

    names = [name for name, _ in node.keys]
    missing = [name for name in (*names, time, *([id] if id else [])) if name not in rows.schema.names]
    if missing and len(rows):
        raise UsageError(
            f"the rows have no column {missing[0]}",
            why=f"they have {', '.join(rows.schema.names)}; {node.name} is asked for by {', '.join(names)} and a time",
            fix="say which one it is: time=, id=",
        )
    if not len(rows):
        return []
    kind = rows.schema.field(time).type
    if not pa.types.is_timestamp(kind) or kind.tz is None or rows[time].null_count:
        raise BadTime(
            f"{time} is {kind}, not an instant" if not rows[time].null_count else f"{time} is null in some rows",
            why="features are as of a moment, and a time without a zone could mean any",
            fix='cast it to pa.timestamp("us", "UTC")',
        )
    times = rows[time].cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_pylist()
    keys = zip(*(rows[name].to_pylist() for name in names), strict=True)
    ids: Sequence[Any] = rows[id].to_pylist() if id else [None] * len(rows)
    return [Ask(key, at, own) for key, at, own in zip(keys, times, ids, strict=True)]


def with_features(rows: pa.Table, columns: Columns, vectors: Sequence[tuple[Any, ...]]) -> pa.Table:
    """The rows with the features after their own columns; a column of that name gives way."""
    import pyarrow as pa

    fields = arrow.fields(columns)
    rows = rows.drop_columns([field.name for field in fields if field.name in rows.schema.names])
    for place, field in enumerate(fields):
        rows = rows.append_column(field, pa.array([vector[place] for vector in vectors], field.type))
    return rows
