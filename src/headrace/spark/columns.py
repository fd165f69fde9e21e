"""Typed expressions as Spark columns, by tables; the user's text never reaches Spark.

Two columns say everything about an expression. `column` is its value and never raises, whatever Spark's ANSI setting:
null where the result is null, undefined or does not fit. `fault` tells these apart: the words of the misfit, or null.
With no exceptions in the plan, Spark may reorder and push down conditions as it likes.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import reduce

import pyspark.sql.functions as sf

from headrace.base.clock import MICROSECOND, micros
from headrace.expr.evaluate import misfit
from headrace.expr.functions import FUNCTIONS
from headrace.expr.nodes import Call, Case, Cast, Expr, Literal, Ref
from headrace.expr.types import DURATION, TIME
from headrace.spark.functions import DEFINED, SPECIAL, Value, convert, spark_type

Values = Mapping[str, Value]


def column(expr: Expr, values: Values) -> Value:
    """The value; `values` are the columns by name, those of named rows as `row.name`."""
    return _Compiler(values).value(expr)


def fault(expr: Expr, values: Values) -> Value | None:
    """Why the value does not fit, as text, null where it does; None if every row fits."""
    return _Compiler(values).fault(expr)


class _Compiler:
    """Compiles the nodes of one tree, each once."""

    def __init__(self, values: Values) -> None:
        self._columns = values
        self._done: dict[Expr, Value] = {}

    def value(self, expr: Expr) -> Value:
        if expr not in self._done:
            self._done[expr] = self._value(expr)
        return self._done[expr]

    def _value(self, expr: Expr) -> Value:
        match expr:
            case Ref():
                return self._columns[expr.path]
            case Literal():
                return _literal(expr)
            case Cast():
                return convert(expr, self.value(expr.arg))
            case Case():
                return _chain(
                    [(self.value(when), self.value(then)) for when, then in expr.branches], self.value(expr.otherwise)
                )
            case Call():
                args = [self.value(arg) for arg in expr.args]
                direct = FUNCTIONS[expr.op].spark
                return getattr(sf, direct)(*args) if direct else SPECIAL[expr.op](expr, *args)
            case _:
                raise TypeError(f"{expr!r} is no expression")

    def fault(self, expr: Expr) -> Value | None:
        match expr:
            case Call(op="and" | "or" | "coalesce"):
                return self._lazy(expr)
            case Case():
                return self._branches(expr, 0)
            case _:
                own = self._misfit(expr) if expr.fails else None
                return _first([*(self.fault(child) for child in expr.children), own])

    def _misfit(self, expr: Expr) -> Value:
        """The arguments are there, the result is defined, and still it is null: it did not fit."""
        defined = DEFINED.get(expr.op) if isinstance(expr, Call) else None
        args = [self.value(child) for child in expr.children]
        holds = [arg.isNotNull() for arg in args] + ([defined(*args)] if defined else [])
        return sf.when(reduce(lambda a, b: a & b, holds) & self.value(expr).isNull(), sf.lit(misfit(expr)))

    def _lazy(self, call: Call) -> Value | None:
        """What is not evaluated in Python cannot fail here either."""
        *before, last = call.args
        found = self.fault(last)
        for arg in reversed(before):
            if found is not None:
                value = self.value(arg)
                goes_on = value.isNull() if call.op == "coalesce" else ~value.eqNullSafe(sf.lit(call.op == "or"))
                found = sf.when(goes_on, found)
            found = _first([self.fault(arg), found])
        return found

    def _branches(self, case: Case, index: int) -> Value | None:
        if index == len(case.branches):
            return self.fault(case.otherwise)
        when, then = case.branches[index]
        taken, rest = self.fault(then), self._branches(case, index + 1)
        absent = sf.lit(None).cast("string")
        chosen = None
        if taken is not None or rest is not None:
            chosen = sf.when(self.value(when), absent if taken is None else taken).otherwise(
                absent if rest is None else rest
            )
        return _first([self.fault(when), chosen])


def _first(faults: list[Value | None]) -> Value | None:
    there = [found for found in faults if found is not None]
    return sf.coalesce(*there) if len(there) > 1 else there[0] if there else None


def _chain(branches: list[tuple[Value, Value]], otherwise: Value) -> Value:
    (condition, result), *rest = branches
    chain = sf.when(condition, result)
    for condition, result in rest:
        chain = chain.when(condition, result)
    return chain.otherwise(otherwise)


def _literal(literal: Literal) -> Value:
    value = literal.value
    if literal.type == TIME:
        assert isinstance(value, datetime)
        return sf.timestamp_micros(sf.lit(micros(value)).cast("bigint"))
    if literal.type == DURATION:
        return sf.lit(value // MICROSECOND).cast("bigint")  # type: ignore[operator]
    return sf.lit(value).cast(spark_type(literal.type))
