"""What the bank declares: its events, and the streams it reads them as."""

from __future__ import annotations

from datetime import datetime

import headrace as hr


@hr.event(topic="payments", key="card_id", time="at", id="payment_id")
class Payment:
    """A card payment as the terminal reported it."""

    payment_id: str
    card_id: str
    customer_id: str
    terminal_id: str
    amount: hr.Money
    country: str
    at: datetime


bank = hr.App("bank")
payments = bank.stream(Payment, disorder="30 s")
