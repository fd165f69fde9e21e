"""Key texts (rule F1): one column as its text, several as a JSON array."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

import msgspec

from headrace.base.clock import rfc3339


def key_text(values: tuple[Any, ...]) -> str:
    """The wire key of these values.

    >>> key_text(("c1",)), key_text(("c1", 7, Decimal("1.50")))
    ('c1', '["c1",7,"1.50"]')
    """
    if len(values) == 1:
        return _text(values[0])
    parts = [_text(value) if isinstance(value, Decimal | datetime) else value for value in values]
    return msgspec.json.encode(parts).decode()


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return rfc3339(value) if isinstance(value, datetime) else str(value)
