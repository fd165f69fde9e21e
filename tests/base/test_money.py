"""Money: exact, two digits, refused rather than rounded (rule B3)."""

from __future__ import annotations

from decimal import Decimal

import pytest

from headrace.base.errors import MoneyOverflow, WrongType
from headrace.base.money import money


@pytest.mark.parametrize(
    ("given", "kept"), [("12.5", "12.50"), (7, "7.00"), (Decimal("0.10"), "0.10"), ("-3", "-3.00")]
)
def test_money_has_two_digits(given: str | int | Decimal, kept: str) -> None:
    assert str(money(given)) == kept


@pytest.mark.parametrize("given", ["12.345", "NaN", "Infinity", "ten", 1.5, True])
def test_b3_what_is_not_exact_money_is_refused(given: object) -> None:
    with pytest.raises(WrongType):
        money(given)  # type: ignore[arg-type]


def test_b3_overflow_is_an_error_never_a_wrap() -> None:
    assert money("9999999999999999.99") == Decimal("9999999999999999.99")
    for much in ("10000000000000000.00", "1e9999999", "-1e9999999"):  # the last two fit no context of decimal either
        with pytest.raises(MoneyOverflow):
            money(much)
