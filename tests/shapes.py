"""Events and apps that several tests declare things about."""

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


@hr.event(topic="readings", key="sensor", time="at", id="reading_id")
class Reading:
    """A reading with every kind of value, for tests of types."""

    reading_id: str
    sensor: str
    at: datetime
    value: float
    count: int
    price: hr.Money
    ok: bool
    note: str | None = None
    level: float | None = None


def spend() -> hr.App:
    """The bank's spend per card, as in the README."""
    bank = hr.App("bank")
    payments = bank.stream(Payment, disorder="30 s")
    spend = (
        payments.where("amount > 0")
        .key_by("card_id")
        .window(hr.hopping("1 h", every="5 min"), lateness="10 min")
        .agg(spent=hr.sum("amount"), times=hr.count(), terminals=hr.distinct("terminal_id"))
    )
    spend.to(bank.topic("card-spend"))
    spend.late.to(bank.topic("card-spend-late"))
    return bank
