"""Plain values: decimals as whole units, times as micros, and back."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from headrace.expr.types import INT, MONEY, TEXT, TIME, Type, decimal, list_of
from headrace.steps.plain import back, into, kind


@pytest.mark.parametrize(
    ("type", "value", "plain"),
    [
        (MONEY, Decimal("12.34"), 1234),
        (MONEY, Decimal("-0.01"), -1),
        (decimal(38, 6), Decimal("12345678901234567890123456789012.123456"), 12345678901234567890123456789012123456),
        (TIME, datetime(2026, 11, 3, 15, 0, 0, 1, tzinfo=UTC), 1793718000000001),
        (TIME, datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC), -1),
        (list_of(MONEY), [Decimal("1.00"), None], [100, None]),
    ],
)
def test_values_go_there_and_back(type: Type, value: Any, plain: Any) -> None:
    there, home = into(type), back(type)
    assert there is not None
    assert home is not None

    assert there(value) == plain
    assert home(plain) == value


@pytest.mark.parametrize("type", [INT, TEXT, list_of(INT)])
def test_others_stay_as_they_are(type: Type) -> None:
    assert into(type) is None
    assert back(type) is None


def test_kinds_have_names_in_specs() -> None:
    assert [kind(t) for t in (INT, MONEY, decimal(38, 6), TIME, list_of(TEXT))] == [
        "int", "decimal", "decimal", "time", "list",
    ]  # fmt: skip
