"""Partitions as text: what the log says, what directories say, and whether they agree."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from headrace.stores import partition


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("Zoë", "Zoë"),
        (None, None),
        (-7, "-7"),
        (True, "true"),
        (Decimal("1.50"), "1.50"),
        (date(2026, 11, 3), "2026-11-03"),
        (datetime(26, 11, 3, 15, tzinfo=UTC), "0026-11-03 15:00:00.000000"),
    ],
)
def test_values_as_the_log_has_them(value: Any, text: str | None) -> None:
    assert partition.text(value) == text


def test_directories_are_named_after_values() -> None:
    named = partition.directory({"k": "a=b/c %", "n": None})
    assert named == "k=a%3Db%2Fc%20%25/n=__HIVE_DEFAULT_PARTITION__"
    assert partition.directory({}) == ""


def test_a_name_that_no_file_system_takes_is_cut() -> None:
    assert len(partition.directory({"k": "ß" * 300})) == partition.LONGEST
