"""A field of an event: its annotation read as a column, and the check that every value of it passes."""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Annotated, Any, Union, get_args, get_origin

from msgspec import Meta

from headrace.base.clock import utc
from headrace.base.errors import BadTime, WrongType
from headrace.base.money import CENT, MoneyMark, exact
from headrace.expr.types import BOOL, BYTES, FLOAT, INT, MONEY, TEXT, TIME, Column, ListType, Type, list_of

Settle = Callable[[Any], Any]
"""Returns the value as events keep it, or raises a DataError that says why it cannot."""

LOWEST, HIGHEST = -(2**63), 2**63 - 1
KEYS = (TEXT, INT, BOOL, MONEY, TIME)
"""Types with one text form each, so that equal keys are equal bytes; a float has several."""


class Unreadable(Exception):
    """An annotation that is no column type; says what it may be instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field. `native` is the type msgspec decodes; `plain` is set where `type(value) is plain` proves it valid."""

    column: Column
    native: Any
    plain: type | None
    settle: Settle
    loose: bool
    """msgspec's decoder cannot check it in full (cents, zone): decoded values are settled once more."""
    holds_time: bool


def read(name: str, annotation: Any) -> Field:
    """Reads `str`, `hr.Money | None`, `list[datetime]`, ... as a field."""
    inner, nullable = _optional(annotation)
    kind, native = _kind(inner)
    settle = _SETTLE[kind] if not isinstance(kind, ListType) else _settle_list(kind.item)
    item = kind.item if isinstance(kind, ListType) else kind
    return Field(
        column=Column(name, kind, nullable),
        native=native | None if nullable else native,
        plain=_PLAIN.get(kind),
        settle=_or_none(settle) if nullable else settle,
        loose=item in (MONEY, TIME),
        holds_time=item == TIME,
    )


def _optional(annotation: Any) -> tuple[Any, bool]:
    if get_origin(annotation) not in (Union, types.UnionType):
        return annotation, False
    options = [option for option in get_args(annotation) if option is not type(None)]
    if len(options) != 1:
        raise Unreadable("a column has one type; only `| None` may stand beside it")
    return options[0], True


def _kind(annotation: Any) -> tuple[Type, Any]:
    """The column type and the type msgspec decodes it by."""
    if get_origin(annotation) is Annotated and any(isinstance(mark, MoneyMark) for mark in get_args(annotation)):
        return MONEY, Decimal
    if annotation is Decimal:
        raise Unreadable("a bare Decimal has no known precision; write hr.Money")
    if get_origin(annotation) is list:
        (item,) = get_args(annotation)
        kind, native = _kind(item)
        if isinstance(kind, ListType):
            raise Unreadable("lists of lists are no column; keep the inner values in events of their own")
        return list_of(kind), list[native]  # type: ignore[valid-type]
    try:
        return _KINDS[annotation]
    except (KeyError, TypeError):
        known = "str, int, float, bool, bytes, datetime, hr.Money, list[...] of these, each with `| None`"
        raise Unreadable(f"a field is one of {known}") from None


_KINDS: dict[Any, tuple[Type, Any]] = {
    str: (TEXT, str),
    int: (INT, Annotated[int, Meta(ge=LOWEST, le=HIGHEST)]),
    float: (FLOAT, float),
    bool: (BOOL, bool),
    bytes: (BYTES, bytes),
    datetime: (TIME, Annotated[datetime, Meta(tz=True)]),
}
_PLAIN: dict[Type, type] = {TEXT: str, BOOL: bool, BYTES: bytes}


def _text(value: Any) -> Any:
    return value if isinstance(value, str) else _refuse(value, "text")


def _bool(value: Any) -> Any:
    return value if isinstance(value, bool) else _refuse(value, "a bool")


def _bytes(value: Any) -> Any:
    return value if isinstance(value, bytes) else _refuse(value, "bytes")


def _int(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int):
        _refuse(value, "an int")
    if not LOWEST <= value <= HIGHEST:
        _refuse(value, "an int of 64 bits")
    return value


def _float(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, float | int):
        _refuse(value, "a float")
    if not math.isfinite(value):
        _refuse(value, "a finite number", why="JSON has no NaN and no infinity (rule B3)")
    return float(value)


def _time(value: Any) -> Any:
    if not isinstance(value, datetime):
        _refuse(value, "a datetime")
    if value.tzinfo is UTC:
        return value
    try:
        return utc(value)
    except BadTime as naive:
        raise WrongType(naive.what, why=naive.why, fix=naive.fix) from None


_CENTS = Context(prec=18, traps=[Inexact, InvalidOperation])


def _money(value: Any) -> Any:
    if not isinstance(value, Decimal):
        _refuse(value, "money", fix='write hr.money("12.34")')
    try:
        cents = _CENTS.quantize(value, CENT)  # one call for precision, range and two digits
    except (Inexact, InvalidOperation):
        return exact(value)  # which of the three, in words
    return cents if cents.is_finite() else exact(value)


_SETTLE: dict[Type, Settle] = {
    TEXT: _text,
    INT: _int,
    FLOAT: _float,
    BOOL: _bool,
    BYTES: _bytes,
    TIME: _time,
    MONEY: _money,
}


def _settle_list(item: Type) -> Settle:
    settle = _SETTLE[item]

    def settled(value: Any) -> Any:
        if not isinstance(value, list | tuple):
            _refuse(value, f"a list of {item}")
        return [settle(one) for one in value]

    return settled


def _or_none(settle: Settle) -> Settle:
    return lambda value: None if value is None else settle(value)


def _refuse(value: Any, wanted: str, *, why: str = "", fix: str = "") -> None:
    shown = repr(value) if len(repr(value)) <= 60 else f"{repr(value)[:57]}..."
    kind = type(value).__name__
    raise WrongType(f"{shown} is not {wanted}", why=why or f"it is of type {kind}", fix=fix or f"give {wanted}")
