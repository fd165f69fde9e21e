"""The partition of a lake's file: its values as Delta's log writes them, and the directory that is named after them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any
from urllib.parse import quote

NULL = "__HIVE_DEFAULT_PARTITION__"
"""What stands for null in the name of a directory, the same for every engine."""
LONGEST = 200
"""Characters of a directory's name: no file system takes many more. The name is for people, Delta reads its log."""

Values = Mapping[str, str | None]
"""Columns and values, as text."""


def text(value: Any) -> str | None:
    """A value as the log has it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds")
    return value.isoformat() if isinstance(value, date) else str(value)


def directory(values: Values) -> str:
    """The directory as Hive, Spark and delta-rs name it; "" if there is no partition.

    >>> directory({"at_day": "2026-11-03", "country": None})
    'at_day=2026-11-03/country=__HIVE_DEFAULT_PARTITION__'
    """
    shown = {name: NULL if value is None else quote(value, safe="") for name, value in values.items()}
    return "/".join(f"{name}={value}"[:LONGEST] for name, value in shown.items())
