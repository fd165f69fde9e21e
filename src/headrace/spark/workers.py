"""Python functions on rows, inside Spark's Python workers: what the reference engine does, with the same words.

Times cross as micros, because PySpark hands out naive local times. The user's function travels pickled, with the
driver's sys.path, so that a worker can import the module it lives in.
"""

from __future__ import annotations

import sys
import traceback
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyspark.sql.functions as sf
from pyspark.cloudpickle import dumps, loads

from headrace.base.clock import from_micros, micros
from headrace.expr.types import TIME, Columns, ListType, Type
from headrace.model.declared import MapRows
from headrace.spark.functions import spark_type

Convert = Callable[[Any], Any]


def applied(node: MapRows, row: Any, columns: Columns) -> Any:
    """A column of struct<rows: array<struct<...>>, error: string>: what the function made of the row."""
    fields = ", ".join(f"`{c.name}`: {_crossing(c.type)}" for c in node.result.columns)
    call = Call(
        function=dumps(node.function),
        path=list(sys.path),
        names=[c.name for c in columns],
        arriving=[_arriving(c.type) for c in columns],
        wanted=node.result.name,
        leaving=[(c.name, _leaving(c.type)) for c in node.result.columns],
        many=node.many,
        retries=node.retries,
        stop=node.on_error == "stop",
    )
    told = sf.struct(*(_told(row[c.name], c.type).alias(c.name) for c in columns))
    return sf.udf(call, f"struct<rows: array<struct<{fields}>>, error: string>", useArrow=False)(told)


def returned(row: Any, columns: Columns) -> list[Any]:
    """The columns of a row that a function made, as Spark knows them."""
    return [_heard(row[c.name], c.type) for c in columns]


@dataclass
class Call:
    """Calls the user's function on a row, in a worker. Pickled with the query."""

    function: bytes  # pickled
    path: list[str]
    names: list[str]
    arriving: list[Convert | None]
    wanted: str
    leaving: list[tuple[str, Convert | None]]
    many: bool
    retries: int
    stop: bool

    def __call__(self, row: Any) -> tuple[list[Any], str | None] | None:
        if row is None:
            return None  # a row of another step, passing by
        seen, function = self._opened
        told = seen(*(_converted(c, v) for c, v in zip(self.arriving, row, strict=True)))
        for left in range(self.retries, -1, -1):
            try:
                found = function(told)
                return [self._values(result) for result in (found if self.many else [found])], None
            except Exception as broken:
                if left == 0 and self.stop:
                    raise
                if left == 0:
                    return [], "".join(traceback.format_exception(broken)).rstrip()
        raise AssertionError("retries are never negative")

    @cached_property
    def _opened(self) -> tuple[Any, Any]:
        """The row's class and the function, made once a worker. The path first: unpickling imports the module."""
        sys.path.extend(p for p in self.path if p not in sys.path)
        return namedtuple("Row", self.names, rename=True), loads(self.function)

    def _values(self, result: Any) -> tuple[Any, ...]:
        described = getattr(type(result), "__headrace__", None)
        if described is None or described.name != self.wanted:
            raise TypeError(f"the function gave {result!r}; its rows are declared to be {self.wanted}")
        return tuple(_converted(convert, getattr(result, name)) for name, convert in self.leaving)


def _converted(convert: Convert | None, value: Any) -> Any:
    return value if convert is None or value is None else convert(value)


def _each(convert: Convert) -> Convert:
    return lambda values: [convert(value) for value in values]


def _is_times(type: Type) -> bool:
    return isinstance(type, ListType) and type.item == TIME


def _crossing(type: Type) -> str:
    return "bigint" if type == TIME else "array<bigint>" if _is_times(type) else spark_type(type)


def _arriving(type: Type) -> Convert | None:
    return from_micros if type == TIME else _each(from_micros) if _is_times(type) else None


def _leaving(type: Type) -> Convert | None:
    return micros if type == TIME else _each(micros) if _is_times(type) else None


def _told(value: Any, type: Type) -> Any:
    if _is_times(type):
        return sf.transform(value, sf.unix_micros)
    return sf.unix_micros(value) if type == TIME else value


def _heard(value: Any, type: Type) -> Any:
    if _is_times(type):
        return sf.transform(value, sf.timestamp_micros)
    return sf.timestamp_micros(value) if type == TIME else value
