"""The Python side of the table of functions: what each computes on values that are not null."""

from __future__ import annotations

import math
import operator
import re
import zlib
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from headrace.base.clock import EPOCH, MICROSECOND
from headrace.expr.casts import finite, whole
from headrace.expr.decimals import EXACT, PRODUCT, QUOTIENT_STEP, Unfit, fit
from headrace.expr.rules import LIKE_ESCAPE
from headrace.expr.types import DURATION, FLOAT, INT, TIME, DecimalType

if TYPE_CHECKING:
    from headrace.expr.nodes import Call

Operation = Callable[..., object]

eq, ne, lt, le, gt, ge = operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge
negated, concat = operator.not_, operator.add
sin, cos, radians = math.sin, math.cos, math.radians
EARTH_WIDE_M = 2 * 6_371_000.0
DEGREE = math.pi / 180
HALF_DEGREE = math.pi / 360

MILLISECOND = timedelta(milliseconds=1)
FARTHEST = 10**9  # positions in a text beyond this are the same as this; keeps to the JVM's 32 bits
WHOLE_FLOATS = 2.0**52  # from here on every float is a whole number


# -- arithmetic: ints keep to 64 bits, floats stay finite, decimals follow the table


def plus(call: Call) -> Operation:
    if call.type == TIME:
        return _shift
    return _arithmetic(call, operator.add, EXACT.add)


def minus(call: Call) -> Operation:
    if call.type == DURATION:
        return operator.sub
    if call.type == TIME:
        return lambda time, by: _shift(time, -by)
    return _arithmetic(call, operator.sub, EXACT.subtract)


def times(call: Call) -> Operation:
    return _arithmetic(call, operator.mul, PRODUCT.multiply)


def divide(call: Call) -> Operation:
    type = call.type
    if isinstance(type, DecimalType):
        return lambda a, b: fit(EXACT.quantize(EXACT.divide(a, b), QUOTIENT_STEP), type) if b else None
    return lambda a, b: finite(a / b) if b else None


def remainder(call: Call) -> Operation:
    if call.type == INT:
        return lambda a, b: (abs(a) % abs(b) * (1 if a >= 0 else -1)) if b else None
    if call.type == FLOAT:
        return lambda a, b: math.fmod(a, b) if b else None
    return lambda a, b: _one_zero(EXACT.remainder(a, b)) if b else None


def negate(call: Call) -> Operation:
    if call.type == INT:
        return lambda a: whole(-a)
    return operator.neg if call.type == FLOAT else lambda a: a.copy_negate() if a else a


def absolute(call: Call) -> Operation:
    if call.type == INT:
        return lambda a: whole(abs(a))
    return abs if call.type == FLOAT else Decimal.copy_abs


def round_to(call: Call) -> Operation:
    digits = call.args[1].constant if len(call.args) == 2 else 0
    assert isinstance(digits, int)
    type = call.type
    if isinstance(type, DecimalType):
        return lambda a, _=0: fit(a, type)
    if type == INT:
        return lambda a, _=0: a
    scale = 10.0**digits
    return lambda a, _=0: _round_float(a, scale)


def floor(call: Call) -> Operation:
    return _to_whole(call, math.floor)


def ceil(call: Call) -> Operation:
    return _to_whole(call, math.ceil)


def _to_whole(call: Call, function: Callable[[Any], int]) -> Operation:
    type = call.type
    if isinstance(type, DecimalType):
        return lambda a: fit(Decimal(function(a)), type)
    return lambda a: whole(function(a))


def _arithmetic(call: Call, plain: Operation, decimals: Callable[[Decimal, Decimal], Decimal]) -> Operation:
    type = call.type
    if isinstance(type, DecimalType):
        return lambda a, b: fit(decimals(a, b), type)
    keep: Callable[[Any], object] = whole if type == INT else finite
    return lambda a, b: keep(plain(a, b))


def _round_float(value: float, scale: float) -> float:
    """Half away from zero in plain float steps that every engine does alike (repr-based rounding differs by JVM)."""
    scaled = abs(value) * scale
    if scaled >= WHOLE_FLOATS:
        return value
    base = math.floor(scaled)
    near = (base + (scaled - base >= 0.5)) / scale
    return -near if value < 0 else near


def _one_zero(value: Decimal) -> Decimal:
    return value or value.copy_abs()


def _overflowing(function: Callable[..., float], *args: float) -> float:
    """Python raises where IEEE arithmetic says infinity."""
    try:
        return function(*args)
    except OverflowError:
        raise Unfit from None


def sqrt(a: float) -> float | None:
    return math.sqrt(a) if a >= 0 else None


def power(a: float, b: float) -> float | None:
    if (a == 0 and b < 0) or (a < 0 and not b.is_integer()):
        return None
    return _overflowing(math.pow, a, b)


def exp(a: float) -> float:
    return _overflowing(math.exp, a)


def ln(a: float) -> float | None:
    return math.log(a) if a > 0 else None


def asin(a: float) -> float | None:
    return math.asin(a) if -1 <= a <= 1 else None


def distance_km(lat: float, lon: float, lat2: float, lon2: float) -> float | None:
    """By haversines. Rounded far above what engines differ by in a sine, so that they agree."""
    if max(abs(lat), abs(lat2)) > 90 or max(abs(lon), abs(lon2)) > 180:
        return None
    up, along = math.sin((lat2 - lat) * HALF_DEGREE), math.sin((lon2 - lon) * HALF_DEGREE)
    part = up * up + math.cos(lat * DEGREE) * math.cos(lat2 * DEGREE) * (along * along)
    return math.floor(math.asin(math.sqrt(min(part, 1.0))) * EARTH_WIDE_M + 0.5) / 1000


# -- choice: these see nulls


def is_null(a: object) -> bool:
    return a is None


def among(a: object, *options: object) -> bool | None:
    if a is None:
        return None
    if any(option is not None and a == option for option in options):
        return True
    return None if None in options else False


def between(a: Any, low: Any, high: Any) -> bool | None:
    if a is None:
        return None
    if (low is not None and a < low) or (high is not None and a > high):
        return False
    return None if low is None or high is None else True


def null_if(a: object, b: object) -> object:
    return None if a == b else a


def greatest(*options: Any) -> object:
    return max((option for option in options if option is not None), default=None)


def least(*options: Any) -> object:
    return min((option for option in options if option is not None), default=None)


# -- text


def like(call: Call) -> Operation:
    pattern = call.args[1].constant
    assert isinstance(pattern, str)
    matches = re.compile(_regex(pattern), re.DOTALL).fullmatch
    return lambda text, _pattern: matches(text) is not None


def _regex(pattern: str) -> str:
    parts, rest = [], iter(pattern)
    for char in rest:
        if char == LIKE_ESCAPE:
            parts.append(re.escape(next(rest)))
        else:
            parts.append({"%": ".*", "_": "."}.get(char) or re.escape(char))
    return "".join(parts)


def crc32(text: str) -> int:
    return zlib.crc32(text.encode())


def trim(text: str) -> str:
    return text.strip(" ")


def substr(text: str, position: int, count: int) -> str:
    position = max(-FARTHEST, min(FARTHEST, position))
    count = max(-FARTHEST, min(FARTHEST, count))
    start = position - 1 if position > 0 else len(text) + position if position < 0 else 0
    return text[max(start, 0) : max(start + count, 0)]


def replace(text: str, old: str, new: str) -> str:
    return text.replace(old, new) if old else text


# -- time: values are UTC


def _shift(one: Any, other: Any) -> datetime:
    try:
        found: datetime = one + other
    except OverflowError:
        raise Unfit from None
    return found


def extract(call: Call) -> Operation:
    part = _PARTS[str(call.args[0].constant)]
    return lambda _unit, time: part(time)


def date_trunc(call: Call) -> Operation:
    start = _STARTS[str(call.args[0].constant)]
    return lambda _unit, time: start(time)


_PARTS: dict[str, Callable[[datetime], int]] = {
    "year": lambda t: t.year,
    "quarter": lambda t: (t.month + 2) // 3,
    "month": lambda t: t.month,
    "week": lambda t: t.isocalendar().week,
    "day": lambda t: t.day,
    "isodow": lambda t: t.isoweekday(),
    "hour": lambda t: t.hour,
    "minute": lambda t: t.minute,
    "second": lambda t: t.second,
}


def _day(t: datetime) -> datetime:
    return t.replace(hour=0, minute=0, second=0, microsecond=0)


_STARTS: dict[str, Callable[[datetime], datetime]] = {
    "year": lambda t: _day(t).replace(month=1, day=1),
    "quarter": lambda t: _day(t).replace(month=(t.month - 1) // 3 * 3 + 1, day=1),
    "month": lambda t: _day(t).replace(day=1),
    "week": lambda t: _day(t) - timedelta(days=t.weekday()),
    "day": _day,
    "hour": lambda t: t.replace(minute=0, second=0, microsecond=0),
    "minute": lambda t: t.replace(second=0, microsecond=0),
    "second": lambda t: t.replace(microsecond=0),
}


def seconds_between(a: datetime, b: datetime) -> float:
    return float((b - a) // MICROSECOND) / 1e6


def unix_millis(t: datetime) -> int:
    return (t - EPOCH) // MILLISECOND


def timestamp_millis(millis: int) -> datetime:
    try:
        return EPOCH + timedelta(milliseconds=millis)
    except OverflowError:
        raise Unfit from None
