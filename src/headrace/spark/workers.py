"""Python functions on rows, inside Spark's Python workers: the same calls as in the reference engine.

Times cross as micros, because PySpark hands out naive local times. The user's function travels pickled, with the
driver's sys.path, so that a worker can import the module it lives in.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyspark.sql.functions as sf
from pyspark.cloudpickle import dumps, loads

from headrace.base.clock import from_micros, micros
from headrace.base.errors import BadStep, FunctionFailed
from headrace.expr.types import BOOL, BYTES, TIME, Column, Columns, ListType, Type
from headrace.model.declared import FilterRows, MapRows
from headrace.spark.functions import spark_type
from headrace.steps.function import Condition, Function, trace
from headrace.steps.plain import Convert, each


def applied(node: MapRows | FilterRows, mine: Any, row: Any, place: Any) -> Any:
    """A column of struct<rows: array<struct<...>>, error: string>: what the function made of the row; null where the
    row is not `mine`. A condition makes one row, of nothing but True, or none. `place` names the row in an error that
    stops the query."""
    columns = node.of.columns
    made = node.result.columns if isinstance(node, MapRows) else (Column("kept", BOOL),)
    fields = ", ".join(f"`{c.name}`: {_crossing(c.type)}" for c in made)
    call = Call(
        packed=_packed(node),
        path=list(sys.path),
        names=[c.name for c in columns],
        arriving=[_arriving(c.type) for c in columns],
        leaving=[_leaving(c.type) for c in made],
        many=isinstance(node, MapRows) and node.many,
        retries=node.retries,
        stop=node.on_error == "stop",
    )
    told = sf.when(mine, sf.struct(*(_told(row[c.name], c.type).alias(c.name) for c in columns)))
    function = sf.udf(call, f"struct<rows: array<struct<{fields}>>, error: string>", useArrow=False)
    # To Spark it may give another answer each time: so it is asked once for each row.
    return function.asNondeterministic()(told, place if call.stop else sf.lit(None).cast("string"))


def returned(row: Any, columns: Columns) -> list[Any]:
    """The columns of a row that a function made, as Spark knows them."""
    return [_heard(row[c.name], c.type) for c in columns]


def _packed(node: MapRows | FilterRows) -> bytes:
    """The function and the event it makes, None of a condition. An event travels as the name of its module: its class
    cannot be taken apart as those of plain Python can."""
    result = node.result if isinstance(node, MapRows) else None
    try:
        if result is not None:
            _check_importable(result.cls)
        packed: bytes = dumps((node.function, result))
        return packed
    except Exception as broken:  # pickle raises many kinds
        raise BadStep(
            f"{getattr(node.function, '__name__', 'the function')} cannot travel to Spark's workers",
            why=str(broken),
            fix="define it, and the events it makes, at the top of a module that can be imported",
            where=node.where,
        ) from None


def _check_importable(cls: type) -> None:
    module = sys.modules.get(cls.__module__)
    if cls.__module__ == "__main__" or getattr(module, cls.__qualname__, None) is not cls:
        raise TypeError(f"{cls.__qualname__} of {cls.__module__} cannot be imported")


@dataclass
class Call:
    """Calls the user's function on a row, in a worker. Pickled with the query."""

    packed: bytes
    path: list[str]
    names: list[str]
    arriving: list[Convert | None]
    leaving: list[Convert | None]
    many: bool
    retries: int
    stop: bool

    def __call__(self, row: Any, place: str | None) -> tuple[list[Any], str | None] | None:
        if row is None:
            return None  # a row of another step, passing by
        name, function = self._opened
        try:
            rows = function(each(self.arriving, row))
        except Exception as broken:
            if self.stop:
                words = f"{name} failed on {place}: {broken!r}\n{trace(broken)}"
                raise RuntimeError(f"[headrace:{FunctionFailed.code}] {words}") from None
            return [], trace(broken)
        return [each(self.leaving, values) for values in rows], None

    @cached_property
    def _opened(self) -> tuple[str, Function | Condition]:
        """The function and its name, made once a worker. The path first: unpickling imports the module."""
        sys.path.extend(p for p in self.path if p not in sys.path)
        call, result = loads(self.packed)
        name = getattr(call, "__name__", "the function")
        if result is None:
            return name, Condition(call, self.names, retries=self.retries)
        return name, Function(call, self.names, result, many=self.many, retries=self.retries)


def _each(convert: Convert) -> Convert:
    return lambda values: [convert(value) for value in values]


def _item(type: Type) -> Type:
    return type.item if isinstance(type, ListType) else type


def _for(type: Type, converts: dict[Type, Convert]) -> Convert | None:
    """What converts values of this type, or each value of such a list; None where nothing has to."""
    found = converts.get(_item(type))
    return _each(found) if found is not None and isinstance(type, ListType) else found


def _arriving(type: Type) -> Convert | None:
    return _for(type, {TIME: from_micros, BYTES: bytes})  # PySpark may hand out a bytearray


def _leaving(type: Type) -> Convert | None:
    return _for(type, {TIME: micros})


def _crossing(type: Type) -> str:
    if _item(type) != TIME:
        return spark_type(type)
    return "array<bigint>" if isinstance(type, ListType) else "bigint"


def _told(value: Any, type: Type) -> Any:
    return _as(value, type, sf.unix_micros)


def _heard(value: Any, type: Type) -> Any:
    return _as(value, type, sf.timestamp_micros)


def _as(value: Any, type: Type, convert: Convert) -> Any:
    """Times as Python or as Spark knows them; other values as they are."""
    if _item(type) != TIME:
        return value
    return sf.transform(value, convert) if isinstance(type, ListType) else convert(value)
