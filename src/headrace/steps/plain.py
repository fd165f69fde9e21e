"""Values as steps see them: the same few plain kinds in Python and in a kernel.

| column  | row           | plain                  |
|---------|---------------|------------------------|
| decimal | Decimal 12.34 | 1234, units of scale 2 |
| time    | datetime      | micros since the epoch |
| others  | as they are   | as they are            |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from decimal import Context, Decimal
from typing import Any

from headrace.base.clock import EPOCH, MICROSECOND, from_micros
from headrace.expr.types import TIME, DecimalType, ListType, Type

Convert = Callable[[Any], Any]

_EXACT = Context(prec=76)  # twice the longest decimal: scaling never rounds


def kind(type: Type) -> str:
    """The name of a type in specs."""
    if isinstance(type, DecimalType):
        return "decimal"
    return "list" if isinstance(type, ListType) else type.name


def into(type: Type) -> Convert | None:
    """From a row's value, not null, to the plain one; None: it is the same."""
    if isinstance(type, DecimalType):
        scale = type.scale
        return lambda value: int(value.scaleb(scale, _EXACT))
    if type == TIME:
        return _micros
    if isinstance(type, ListType):
        return _each(into(type.item))
    return None


def back(type: Type) -> Convert | None:
    """From a plain value, not null, to the row's; None: it is the same."""
    if isinstance(type, DecimalType):
        scale = type.scale
        return lambda units: Decimal(units).scaleb(-scale, _EXACT)
    if type == TIME:
        return from_micros
    if isinstance(type, ListType):
        return _each(back(type.item))
    return None


def each(converts: Sequence[Convert | None], values: Iterable[Any]) -> tuple[Any, ...]:
    """Every value through its own conversion; null stays null."""
    return tuple([v if c is None or v is None else c(v) for c, v in zip(converts, values, strict=True)])


def _micros(moment: datetime) -> int:
    """As base.clock.micros, without its check of the zone: a row's times are UTC."""
    since: timedelta = moment - EPOCH
    return since // MICROSECOND


def _each(convert: Convert | None) -> Convert | None:
    if convert is None:
        return None
    return lambda values: [None if value is None else convert(value) for value in values]
