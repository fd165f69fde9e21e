"""The columns of a lake table: the row's own in Delta's types, and one for each time it is partitioned by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headrace.base.errors import TableMismatch
from headrace.expr.types import Columns
from headrace.model.target import LakeTable, Part
from headrace.stores import arrow

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable

KEY = "headrace.key"
"""The property of a table that says by which columns its rows replace each other."""


def schema(target: LakeTable, columns: Columns) -> pa.Schema:
    import pyarrow as pa

    parts = [pa.field(part.name, _part_type(part)) for part in target.partition if part.unit]
    return pa.schema([*arrow.fields(columns), *parts])


def names(target: LakeTable, columns: Columns) -> list[str]:
    return [*(column.name for column in columns), *(part.name for part in target.partition if part.unit)]


def partitions(target: LakeTable) -> list[str]:
    return [part.name for part in target.partition]


def part_values(rows: pa.Table, part: Part) -> pa.ChunkedArray:
    """What a part says about each row: the value itself, or the beginning of its hour, day, month or year."""
    import pyarrow.compute as pc
    import pyarrow.types as pt

    values = rows[part.column]
    if part.unit:
        return pc.floor_temporal(values, unit=part.unit).cast(_part_type(part))
    # Delta reads an empty text as null there.
    return pc.if_else(pc.equal(values, ""), None, values) if pt.is_string(values.type) else values


def missing(table: DeltaTable, target: LakeTable, columns: Columns) -> list[pa.Field]:
    """The columns that the table lacks; TableMismatch where it can never hold these rows."""
    import pyarrow as pa

    there = {field.name: field for field in pa.schema(table.schema())}
    wanted = schema(target, columns)
    wrong = [
        f"{field.name} is {there[field.name].type} there, and {field.type} here"
        for field in wanted
        if field.name in there and not arrow.same(there[field.name].type, field.type)
    ]
    wrong += [
        f"{field.name} may not be null there, and is not here"
        for field in there.values()
        if field.name not in wanted.names and not field.nullable
    ]
    parts, key = table.metadata().partition_columns, table.metadata().configuration.get(KEY)
    if parts != partitions(target):
        wrong.append(f"it is partitioned by {_list(parts)} there, and {_list(partitions(target))} here")
    if key is not None and key != ", ".join(target.key):
        wrong.append(f"its key is {key or 'none'} there, and {_list(target.key)} here")
    if wrong:
        raise TableMismatch(
            f"{target.label} is there, and cannot take these rows",
            why="; ".join(wrong),
            fix=f"`headrace rebuild {target.label}` makes it anew from the log, or write to another name",
            where=target.where,
        )
    return [field for field in wanted if field.name not in there]


def _part_type(part: Part) -> pa.DataType:
    import pyarrow as pa

    return pa.timestamp("us", "UTC") if part.unit == "hour" else pa.date32()


def _list(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"
