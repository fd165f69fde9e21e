"""Money: exact Decimal(18, 2); what does not fit is an error, never rounded or wrapped (rule B3)."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Annotated

from headrace.base.errors import MoneyOverflow, WrongType


class MoneyMark:
    """The mark on a field's type that says: this Decimal is money."""

    def __repr__(self) -> str:
        return "Money"


Money = Annotated[Decimal, MoneyMark()]

CENT = Decimal("0.01")
LIMIT = Decimal("9999999999999999.99")


def money(value: str | int | Decimal) -> Decimal:
    """An amount with two digits. Floats are refused: 0.1 is not ten cents.

    >>> money("12.5")
    Decimal('12.50')
    """
    if isinstance(value, Decimal):
        return exact(value)
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise WrongType(f"{value!r} is not money", why="money is text, an int or a Decimal", fix='write money("12.34")')
    try:
        return exact(Decimal(value))
    except InvalidOperation:
        raise WrongType(
            f"{value!r} is not money", why="it is not a decimal number", fix='write money("12.34")'
        ) from None


def exact(amount: Decimal) -> Decimal:
    """The same amount with exactly two digits, or an error that says why it cannot have them."""
    if not amount.is_finite():
        raise WrongType(f"{amount} is not money", why="NaN and infinity are no amounts", fix="send a finite amount")
    if amount.copy_abs() > LIMIT:  # abs() would compute, and raise for what no context holds
        raise MoneyOverflow(f"{amount} is too large for money", why=f"money is Decimal(18, 2), at most {LIMIT}")
    cents = amount.quantize(CENT)
    if cents != amount:
        raise WrongType(
            f"{amount} has more than two digits after the point",
            why="money is exact; rounding is a decision only you can make",
            fix="round it first, for example amount.quantize(Decimal('0.01'))",
        )
    return cents
