"""Conversions between types: which exist, which happen by themselves, and how each is done in Python.

A conversion that cannot hold its value is Unfit (the row becomes a dead letter); try_cast makes it null. Text is read
strictly (no blanks, no "1,000", times as RFC 3339), because that is what every engine can agree on.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any

from headrace.base.clock import utc
from headrace.base.errors import BadTime
from headrace.expr.decimals import EXACT, Unfit, as_decimal, fit, widens
from headrace.expr.types import BOOL, BYTES, FLOAT, INT, NULL, TEXT, TIME, DecimalType, Type, same

INT_MIN, INT_MAX = -(2**63), 2**63 - 1

FLOAT_SCALE = 18  # digits after the point that a float can be cut to; a float has no more than 17 to say

# Read by Python's re and Java's regex alike.
INT_TEXT = r"[+-]?[0-9]{1,19}"
DECIMAL_TEXT = r"[+-]?[0-9]{1,38}([.][0-9]{1,38})?"
FLOAT_TEXT = r"[+-]?[0-9]{1,40}([.][0-9]{1,40})?([eE][+-]?[0-9]{1,3})?"
TIME_TEXT = (
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,6})?"
    r"(Z|[+-](0[0-9]|1[0-4]):[0-5][0-9])"
)

_TARGETS: dict[Type, frozenset[Type | type]] = {
    BOOL: frozenset({BOOL, INT, TEXT}),
    INT: frozenset({INT, FLOAT, TEXT, DecimalType}),
    FLOAT: frozenset({FLOAT, INT, DecimalType}),
    TEXT: frozenset({TEXT, BOOL, INT, FLOAT, TIME, DecimalType}),
    TIME: frozenset({TIME, TEXT}),
    BYTES: frozenset({BYTES}),
}
_DECIMAL_TARGETS: frozenset[Type | type] = frozenset({INT, FLOAT, TEXT, DecimalType})


def castable(source: Type, target: Type) -> bool:
    """Whether `cast(source as target)` is offered at all."""
    if source == NULL:
        return target != NULL
    targets = _DECIMAL_TARGETS if isinstance(source, DecimalType) else _TARGETS.get(source, frozenset())
    if isinstance(target, DecimalType):
        return DecimalType in targets and (source != FLOAT or target.scale <= FLOAT_SCALE)
    return target in targets


def widens_to(source: Type, target: Type) -> bool:
    """Whether the conversion happens by itself: null to anything, int to decimal to float, decimal to a wider one."""
    if source == NULL or same(source, target):
        return True
    if isinstance(target, DecimalType):
        return source == INT or (isinstance(source, DecimalType) and target.precision >= source.precision)
    return target == FLOAT and (source == INT or isinstance(source, DecimalType))


def conversion(source: Type, target: Type) -> Callable[[Any], object]:
    """The Python function for non-null values."""
    if source == NULL or same(source, target):
        return lambda value: value
    if isinstance(target, DecimalType):
        return _to_decimal(source, target)
    if isinstance(source, DecimalType) and target == TEXT:
        return lambda value: format(value, "f")
    return _PLAIN[("decimal" if isinstance(source, DecimalType) else source.name), target.name]


def fails(source: Type, target: Type) -> bool:
    """Whether some value of the source has no place in the target."""
    if source in (NULL, BOOL) or target == TEXT or same(source, target):
        return False
    if isinstance(target, DecimalType):
        return not (source == INT or isinstance(source, DecimalType)) or not widens(as_decimal(source), target)
    return target != FLOAT or source == TEXT


def fits(value: object, source: Type, target: Type) -> bool:
    """Whether one value has a place in the target."""
    try:
        conversion(source, target)(value)
    except Unfit:
        return False
    return True


def whole(value: int) -> int:
    if not INT_MIN <= value <= INT_MAX:
        raise Unfit
    return value


def finite(value: float) -> float:
    """Floats are finite here: JSON cannot say NaN or infinity, and B3 makes them dead letters."""
    if not math.isfinite(value):
        raise Unfit
    return value


def _to_decimal(source: Type, target: DecimalType) -> Callable[[Any], Decimal]:
    if source == FLOAT:
        return lambda value: _from_float(value, target)
    if source == TEXT:
        matches = re.compile(DECIMAL_TEXT).fullmatch
        return lambda text: fit(Decimal(text), target) if matches(text) else _unfit()
    return lambda value: fit(Decimal(value), target)


def _from_float(value: float, target: DecimalType) -> Decimal:
    """Scaled as a float, then rounded half away from zero: what can be done bit for bit on any JVM."""
    scaled = abs(value) * 10.0**target.scale
    if scaled >= 2.0**63:
        raise Unfit
    base = math.floor(scaled)
    units = base + (scaled - base >= 0.5)
    return fit(EXACT.scaleb(Decimal(-units if value < 0 else units), -target.scale), target)


def _truncated(value: float) -> int:
    return whole(int(value))


def _read_int(text: str) -> int:
    return whole(int(text)) if _INT(text) else _unfit()


def _read_float(text: str) -> float:
    return finite(float(text)) if _FLOAT(text) else _unfit()


def _read_bool(text: str) -> bool:
    return text == "true" if text in ("true", "false") else _unfit()


def _read_time(text: str) -> datetime:
    try:
        return utc(datetime.fromisoformat(text)) if _TIME(text) else _unfit()
    except (ValueError, BadTime):
        raise Unfit from None


def _unfit() -> Any:
    raise Unfit


_INT, _FLOAT, _TIME = (re.compile(pattern).fullmatch for pattern in (INT_TEXT, FLOAT_TEXT, TIME_TEXT))

_PLAIN: dict[tuple[str, str], Callable[[Any], object]] = {
    ("bool", "int"): int,
    ("bool", "text"): lambda value: "true" if value else "false",
    ("int", "float"): float,
    ("int", "text"): str,
    ("float", "int"): _truncated,
    ("decimal", "int"): _truncated,
    ("decimal", "float"): float,
    ("text", "bool"): _read_bool,
    ("text", "int"): _read_int,
    ("text", "float"): _read_float,
    ("text", "time"): _read_time,
    ("time", "text"): lambda value: value.isoformat(timespec="microseconds")[:-6] + "Z",  # as rule F1 writes times
}
