"""A guest of the bank: tries out whether payments are answered, with a card and at a terminal that nobody else has, so
that nothing is learnt from it about anybody."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import uuid4

import headrace as hr
from bank.events import Card, Customer, Payment
from bank.tokens import MADE_UP, last4, letters, token

_NUMBER = "4000 0000 0000 0002"
CARD, CUSTOMER, LAST4 = token(_NUMBER, MADE_UP), "customer-guest", last4(_NUMBER)
COUNTRY, LAT, LON = "CH", 47.38, 8.54


def known(at: datetime) -> tuple[Customer, Card]:
    """As the bank knows them."""
    customer = Customer(CUSTOMER, COUNTRY, at - timedelta(days=365), hr.money(5000), at)
    return customer, Card(CARD, CUSTOMER, LAST4, at)


def hello(at: datetime) -> Payment:
    """A payment at home."""
    return Payment(
        payment_id=f"hello-{letters(uuid4().hex)}",
        card_id=CARD,
        customer_id=CUSTOMER,
        terminal_id="ch-guest",
        amount=hr.money("2.00"),
        country=COUNTRY,
        at=at,
        lat=LAT,
        lon=LON,
        last4=LAST4,
    )
