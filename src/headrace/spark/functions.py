"""The Spark side of the table of functions and conversions: those that take more than one call of Spark's.

Each mirrors the Python of the same name in expr/; none of them raises, whatever the row and Spark's ANSI setting.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyspark.sql.functions as sf

from headrace.base.clock import micros
from headrace.expr import casts
from headrace.expr.nodes import Call, Cast, Expr
from headrace.expr.python import DEGREE, EARTH_WIDE_M, FARTHEST, HALF_DEGREE, WHOLE_FLOATS
from headrace.expr.types import BOOL, BYTES, DURATION, FLOAT, INT, NULL, TEXT, TIME, DecimalType, ListType, Type, same

Value = Any  # a pyspark Column

_NAMES = {BOOL: "boolean", INT: "bigint", FLOAT: "double", TEXT: "string", TIME: "timestamp", BYTES: "binary"}
_NAMES |= {DURATION: "bigint", NULL: "void"}  # an interval is its microseconds
_LARGEST = 1.7976931348623157e308
_BELOW_2_63 = math.nextafter(2.0**63, 0.0)
_FIRST, _LAST = micros(datetime.min.replace(tzinfo=UTC)), micros(datetime.max.replace(tzinfo=UTC))
_RFC3339 = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'"


def spark_type(type: Type) -> str:
    """The type as Spark writes it: `decimal(18,2)`, `array<string>`."""
    if isinstance(type, DecimalType):
        return f"decimal({type.precision},{type.scale})"
    if isinstance(type, ListType):
        return f"array<{spark_type(type.item)}>"
    return _NAMES[type]


# -- conversions


def convert(cast: Cast, value: Value) -> Value:
    source, target = cast.arg.type, cast.type
    if same(source, target):
        return value
    if source == TEXT:
        return _read_text(value, target)
    if source == FLOAT and isinstance(target, DecimalType):
        return _float_to_decimal(value, target)
    if source == FLOAT and target == INT:  # Spark lets 2^63 pass as the greatest int
        return _within_int(value).cast("bigint")
    if target == TEXT:
        return _write_text(value, source)
    return value.try_cast(spark_type(target)) if casts.fails(source, target) else value.cast(spark_type(target))


def _read_text(value: Value, target: Type) -> Value:
    if target == BOOL:
        return sf.when(value == "true", sf.lit(True)).when(value == "false", sf.lit(False))
    shape = casts.DECIMAL_TEXT if isinstance(target, DecimalType) else _SHAPES[target]
    found = sf.when(value.rlike(rf"\A(?:{shape})\z"), value).try_cast(spark_type(target))
    if target == FLOAT:
        return _finite(found)
    return _in_calendar(sf.unix_micros(found)) if target == TIME else found


def _write_text(value: Value, source: Type) -> Value:
    if source == TIME:
        return sf.date_format(value, _RFC3339)
    if isinstance(source, DecimalType) and source.scale > 6:  # a cast would write 0E-7 without ANSI
        return sf.call_function("format_number", value, sf.lit("0." + "0" * source.scale))
    return value.cast("string")


def _float_to_decimal(value: Value, target: DecimalType) -> Value:
    """As casts.py does it: scaled as a float, rounded half away from zero, then exact."""
    scaled = sf.abs(value) * sf.lit(10.0**target.scale)
    units = _half_up(sf.when(scaled < 2.0**63, scaled)).cast("decimal(19,0)")
    point = sf.lit(Decimal(1).scaleb(-target.scale)).cast(f"decimal({max(target.scale, 1)},{target.scale})")
    return sf.try_multiply(sf.when(value < 0, -units).otherwise(units), point).try_cast(spark_type(target))


_SHAPES = {INT: casts.INT_TEXT, FLOAT: casts.FLOAT_TEXT, TIME: casts.TIME_TEXT}


# -- functions that take more than one call in Spark


def _finite(value: Value) -> Value:
    """Infinity and NaN are misfits; Spark holds NaN for greater than any number."""
    return _between(value, -_LARGEST, _LARGEST)


def _within_int(value: Value) -> Value:
    """A float whose whole part is a 64-bit int, else null."""
    return _between(value, -(2.0**63), _BELOW_2_63)


def _between(value: Value, low: float, high: float) -> Value:
    """A float or null. By an expression of our own (jvm/Within.scala): `when` would double the plan at every step."""
    return sf.call_function("headrace_within", value, sf.lit(low), sf.lit(high))


def _half_up(value: Value) -> Value:
    """A float that is not negative to the nearest int, halves up, without the doubt that adding 0.5 would bring."""
    base = sf.floor(value)
    return base + sf.when(value - base.cast("double") >= 0.5, sf.lit(1)).otherwise(sf.lit(0)).cast("bigint")


def _in_calendar(since: Value) -> Value:
    """Microseconds to a time between the years 1 and 9999."""
    return sf.timestamp_micros(sf.when(since.between(_FIRST, _LAST), since))


def _plus(call: Call, a: Value, b: Value) -> Value:
    if call.type == TIME:
        return _in_calendar(_micros(call.args[0], a) + _micros(call.args[1], b))
    return _finite(a + b) if call.type == FLOAT else sf.try_add(a, b)


def _minus(call: Call, a: Value, b: Value) -> Value:
    if call.type in (TIME, DURATION):
        since = _micros(call.args[0], a) - _micros(call.args[1], b)
        return since if call.type == DURATION else _in_calendar(since)
    return _finite(a - b) if call.type == FLOAT else sf.try_subtract(a, b)


def _times(call: Call, a: Value, b: Value) -> Value:
    return _finite(a * b) if call.type == FLOAT else sf.try_multiply(a, b)


def _divide(call: Call, a: Value, b: Value) -> Value:
    found = sf.try_divide(a, b)
    return _finite(found) if call.type == FLOAT else found


def _micros(expr: Expr, value: Value) -> Value:
    return value if expr.type == DURATION else sf.unix_micros(value)


def _negate(call: Call, a: Value) -> Value:
    if call.type == INT:
        return sf.try_subtract(sf.lit(0).cast("bigint"), a)
    return _opposite(a, call.type) if isinstance(call.type, DecimalType) else -a


def _abs(call: Call, a: Value) -> Value:
    if isinstance(call.type, DecimalType):
        return sf.when(a < 0, _opposite(a, call.type)).otherwise(a)
    return sf.abs(sf.when(a > casts.INT_MIN, a) if call.type == INT else a)


def _opposite(a: Value, type: DecimalType) -> Value:
    """Spark negates a decimal in 34 digits (Scala's default) and so loses the last of 38: turn the sign in text."""
    if type.precision <= 34:
        return -a
    text = _write_text(a, type)
    turned = sf.when(a < 0, sf.substr(text, sf.lit(2))).otherwise(sf.concat(sf.lit("-"), text))
    return turned.cast(spark_type(type))


def _round(call: Call, a: Value, _digits: Value = None) -> Value:
    digits = call.args[1].constant if len(call.args) == 2 else 0
    assert isinstance(digits, int)
    if call.type == INT:
        return a
    if isinstance(call.type, DecimalType):
        return a.try_cast(spark_type(call.type))  # HALF_UP, too; Spark's round raises where the carry has no room
    scale = 10.0**digits
    scaled = sf.abs(a) * sf.lit(scale)
    near = _half_up(sf.when(scaled < WHOLE_FLOATS, scaled)).cast("double") / sf.lit(scale)
    return sf.when(scaled >= WHOLE_FLOATS, a).otherwise(sf.when(a < 0, -near).otherwise(near))


def _to_whole(function: str) -> Callable[..., Value]:
    def compile(call: Call, a: Value) -> Value:
        if call.args[0].type == INT:
            return a
        if call.args[0].type == FLOAT:
            return getattr(sf, function)(_within_int(a))
        return getattr(sf, function)(a).cast(spark_type(call.type))

    return compile


def _in(call: Call, a: Value, *options: Value) -> Value:
    if call.args[0].type == FLOAT:  # a long list becomes a hash set in Spark, in which 0.0 and -0.0 differ
        a, options = a + 0.0, tuple(option + 0.0 for option in options)
    return a.isin(*options)


def _within(function: str, low: float, high: float) -> Callable[..., Value]:
    """A function of floats that is defined between two bounds."""

    def compile(_call: Call, a: Value) -> Value:
        return getattr(sf, function)(_between(a, low, high))

    return compile


def _distance_km(_call: Call, lat: Value, lon: Value, lat2: Value, lon2: Value) -> Value:
    known = (sf.abs(lat) <= 90) & (sf.abs(lat2) <= 90) & (sf.abs(lon) <= 180) & (sf.abs(lon2) <= 180)
    up, along = sf.sin((lat2 - lat) * HALF_DEGREE), sf.sin((lon2 - lon) * HALF_DEGREE)
    part = up * up + sf.cos(lat * DEGREE) * sf.cos(lat2 * DEGREE) * (along * along)
    metres = sf.floor(sf.asin(sf.sqrt(sf.least(part, sf.lit(1.0)))) * EARTH_WIDE_M + 0.5)
    return sf.when(known, metres.cast("double") / 1000)


def _substr(_call: Call, text: Value, position: Value, count: Value) -> Value:
    def near(place: Value) -> Value:
        return sf.least(sf.greatest(place, sf.lit(-FARTHEST)), sf.lit(FARTHEST)).cast("int")

    # greatest and least pass over nulls
    return sf.when(position.isNotNull() & count.isNotNull(), sf.substr(text, near(position), near(count)))


def _extract(call: Call, _unit: Value, time: Value) -> Value:
    unit = str(call.args[0].constant)
    found = sf.weekday(time) + 1 if unit == "isodow" else getattr(sf, _PARTS.get(unit, unit))(time)
    return found.cast("bigint")


_PARTS = {"week": "weekofyear", "day": "dayofmonth"}


def _date_trunc(call: Call, _unit: Value, time: Value) -> Value:
    return sf.date_trunc(str(call.args[0].constant), time)


def _seconds_between(_call: Call, a: Value, b: Value) -> Value:
    return (sf.unix_micros(b) - sf.unix_micros(a)).cast("double") / sf.lit(1e6)


def _timestamp_millis(_call: Call, millis: Value) -> Value:
    return sf.timestamp_millis(sf.when(millis.between(-(-_FIRST // 1_000), _LAST // 1_000), millis))


def _power(_call: Call, a: Value, b: Value) -> Value:
    return _finite(sf.pow(a, b))


def _power_defined(a: Value, b: Value) -> Value:
    return ~(((a == 0) & (b < 0)) | ((a < 0) & (b != sf.rint(b))))


def _of_column(method: str) -> Callable[..., Value]:
    return lambda _call, a, *rest: getattr(a, method)(*rest)


def _nullif(_call: Call, a: Value, b: Value) -> Value:
    return sf.nullif(a, b)


def _length(_call: Call, a: Value) -> Value:
    return sf.length(a).cast("bigint")


def _exp(_call: Call, a: Value) -> Value:
    return _finite(sf.exp(a))


SPECIAL: dict[str, Callable[..., Value]] = {
    "and": lambda _call, a, b: a & b,
    "or": lambda _call, a, b: a | b,
    "not": lambda _call, a: ~a,
    "=": lambda _call, a, b: a == b,
    "<>": lambda _call, a, b: a != b,
    "<": lambda _call, a, b: a < b,
    "<=": lambda _call, a, b: a <= b,
    ">": lambda _call, a, b: a > b,
    ">=": lambda _call, a, b: a >= b,
    "distinct": lambda _call, a, b: ~a.eqNullSafe(b),
    "is_null": lambda _call, a: a.isNull(),
    "in": _in,
    "between": lambda _call, a, low, high: a.between(low, high),
    "like": lambda call, a, _pattern: a.like(call.args[1].constant),
    "+": _plus,
    "-": _minus,
    "*": _times,
    "/": _divide,
    "negate": _negate,
    "abs": _abs,
    "round": _round,
    "floor": _to_whole("floor"),
    "ceil": _to_whole("ceil"),
    "sqrt": _within("sqrt", 0.0, _LARGEST),
    "power": _power,
    "exp": _exp,
    "ln": _within("ln", 5e-324, _LARGEST),
    "asin": _within("asin", -1.0, 1.0),
    "distance_km": _distance_km,
    "nullif": _nullif,
    "length": _length,
    "substr": _substr,
    "extract": _extract,
    "date_trunc": _date_trunc,
    "seconds_between": _seconds_between,
    "timestamp_millis": _timestamp_millis,
}

# Of the functions that may fail: when is a null result undefined rather than a misfit?
DEFINED: dict[str, Callable[..., Value]] = {"/": lambda _a, b: b != 0, "power": _power_defined}
