"""Key texts (rule F1): one value as its text, several as a JSON array; one rule for producers, tables and engines."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from msgspec.json import Encoder

from headrace.base.clock import rfc3339

_json = Encoder().encode


def value_text(value: Any) -> str:
    """The one text form of a key or id value."""
    if type(value) is str:
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return f"{value:f}"  # str would write a small zero as 0E-7
    return rfc3339(value) if isinstance(value, datetime) else str(value)


def key_text(values: Sequence[Any]) -> str:
    """The record key of these values; in an array numbers and bools stand as such, money and times as their text.

    >>> key_text(("c1",)), key_text(("c1", 7, Decimal("1.50")))
    ('c1', '["c1",7,"1.50"]')
    """
    if len(values) == 1:
        return value_text(values[0])
    return _json([value_text(one) if isinstance(one, Decimal | datetime) else one for one in values]).decode()
