"""What tests of the bank share: its policy, a history lived through once, payments made by hand."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from typing import Any

import headrace as hr
from bank.events import Payment
from bank.policy import policy
from bank.traffic import Traffic
from bank.vectors import Lived, live_through

START = datetime(2026, 10, 1, tzinfo=UTC)


@cache
def lived() -> Lived:
    """Ten days of 150 cards with many frauds, decided by the bank's own policy."""
    return live_through(Traffic(11, cards=150, shops=200, harm=6), START, 10, policy())


def pay(number: int, at: datetime, amount: str = "20.00", **more: Any) -> Payment:
    """A payment of one card in Zurich."""
    usual = {"card_id": "card-a", "terminal_id": "t1", "country": "CH", "lat": 47.38, "lon": 8.54, "last4": "1234"}
    return Payment(payment_id=f"p{number}", customer_id="u1", amount=hr.money(amount), at=at, **(usual | more))
