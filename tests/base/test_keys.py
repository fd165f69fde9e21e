"""Key texts (rule F1): equal keys are equal bytes, whoever writes them."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from headrace.base.keys import key_text

AT = datetime(2026, 11, 3, 15, tzinfo=UTC)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (["c1"], "c1"),
        ([7], "7"),
        ([True], "true"),
        ([Decimal("1.00")], "1.00"),
        ([Decimal("0E-7")], "0.0000000"),
        ([AT], "2026-11-03T15:00:00.000000Z"),
        (["DE", 7], '["DE",7]'),
        (["é", False, Decimal("0.50"), AT], '["é",false,"0.50","2026-11-03T15:00:00.000000Z"]'),
    ],
)
def test_f1_one_value_is_its_text_and_several_are_a_json_array(values: list[Any], text: str) -> None:
    assert key_text(values) == text
