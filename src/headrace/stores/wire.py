"""Values of staged rows in their wire form, the one of the log (rule F1): what a JSON encoder takes as it is."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from msgspec.json import Encoder

from headrace.base.clock import rfc3339
from headrace.base.keys import value_text
from headrace.expr.types import TIME, DecimalType, ListType, Type

json = Encoder().encode
"""Bytes become base64; NaN and infinity, which JSON does not know, become null."""

_PLAIN = 6
"""Digits after the point up to which Arrow writes decimals without an exponent."""


def values(column: pa.ChunkedArray, type: Type) -> list[Any]:
    """All values of a column. What Arrow can write it writes itself, many times faster."""
    if type == TIME:
        column = pc.binary_replace_slice(without_zone(column).cast(pa.string()), start=10, stop=11, replacement="T")
        column = pc.binary_join_element_wise(column, "Z", "")
    elif isinstance(type, DecimalType) and type.scale <= _PLAIN:
        column = column.cast(pa.string())
    elif isinstance(type, DecimalType | ListType):
        return [_value(one, type) for one in column.to_pylist()]
    found: list[Any] = column.to_pylist()
    return found


def without_zone(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The same times, all in UTC: Arrow writes times with a zone thirty times slower."""
    return column.cast(pa.timestamp("us"))


def _value(value: Any, type: Type) -> Any:
    if value is None:
        return None
    if isinstance(type, ListType):
        return [_value(one, type.item) for one in value]
    if isinstance(type, DecimalType):
        return value_text(value)
    return rfc3339(value) if type == TIME else value
