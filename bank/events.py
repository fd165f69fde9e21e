"""The bank's events: payments as terminals report them, customers, cards, and what became known of payments later."""

from __future__ import annotations

from datetime import datetime

import headrace as hr


@hr.event(topic="payments", key="card_id", time="at", id="payment_id")
class Payment:
    """A card payment as the terminal reported it. The card is a token (bank/tokens.py), never its number."""

    payment_id: str
    card_id: str
    customer_id: str
    terminal_id: str
    amount: hr.Money
    country: str
    at: datetime
    lat: float | None = None
    """Where the terminal stands; null where it is not known."""
    lon: float | None = None
    last4: str | None = None
    """All that may be known of the card's number."""
    pin_ok: bool = True
    """False: a wrong PIN. Such a payment is an attempt and never allowed."""


@hr.event(topic="customers", key="customer_id", time="at")
class Customer:
    """A customer as the bank knows them, since `at`."""

    customer_id: str
    home: str
    since: datetime
    day_limit: hr.Money
    """What may be spent in a day."""
    at: datetime


@hr.event(topic="cards", key="card_id", time="at")
class Card:
    """A card that the bank gave out. Payments with any other are refused before they are written (bank/decide.py)."""

    card_id: str
    customer_id: str
    last4: str
    at: datetime


@hr.event(topic="labels", key="payment_id", time="at", id="payment_id")
class Label:
    """What a payment proved to be: 1 is a fraud. `at` is when it became known, days after the payment."""

    payment_id: str
    card_id: str
    terminal_id: str
    customer_id: str
    amount: hr.Money
    fraud: int
    by: str
    at: datetime


@hr.event(topic="acts", key="customer_id", time="at", id="payment_id")
class Act:
    """A suspicious act with a customer's card, as a pattern found it (bank/record.py)."""

    customer_id: str
    card_id: str
    payment_id: str
    pattern: str
    at: datetime
