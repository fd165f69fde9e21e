"""Columns as Arrow and Parquet have them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.expr.types import BOOL, BYTES, FLOAT, INT, TEXT, TIME, Columns, DecimalType, ListType, Type

if TYPE_CHECKING:
    import pyarrow as pa


def fields(columns: Columns) -> list[pa.Field]:
    """The row's own columns. All may be null: a column that is added later has no values in older rows."""
    import pyarrow as pa

    return [pa.field(column.name, _arrow(column.type)) for column in columns]


def same(one: pa.DataType, other: pa.DataType) -> bool:
    """Whether two types hold the same values; what the items of a list are called says nothing."""
    import pyarrow.types as pt

    if pt.is_list(one) and pt.is_list(other):
        return same(one.value_type, other.value_type)
    return bool(one == other)


def _arrow(type: Type) -> pa.DataType:
    import pyarrow as pa

    if isinstance(type, DecimalType):
        return pa.decimal128(type.precision, type.scale)
    if isinstance(type, ListType):
        return pa.list_(_arrow(type.item))
    plain = {
        BOOL: pa.bool_(),
        INT: pa.int64(),
        FLOAT: pa.float64(),
        TEXT: pa.string(),
        TIME: pa.timestamp("us", "UTC"),
        BYTES: pa.binary(),
    }
    return plain[type]
