"""The bank's features, declared once: what is known of a card, a terminal and a customer at each payment.

A payment that is declined counts like any other: they are about what was asked for.
"""

from __future__ import annotations

import headrace as hr

KEPT = "30 d"


def card(app: hr.App, payments: hr.Stream) -> hr.Features:
    """Of the card. A payment that came before is set aside here. Figures are sums of whole numbers and of money: the
    same to the last bit in whatever order they are added up."""
    # A tenth of a unit is fine enough for a spread, and its squares stay far from the bounds of an integer.
    rows = payments.select("*, case when pin_ok then 0 else 1 end as miss, cast(amount * 10 as int) as tenths")
    return (
        app.features("card", key="card_id", source=rows, ttl=KEPT, once="payment_id")
        .over("1 h", "1 d", "7 d", "30 d", spent=hr.sum("amount"), times=hr.count())
        .over("5 min", "1 d", misses=hr.sum("miss"))
        .over("30 d", squares=hr.sum("tenths * tenths"))
        .last("at", "lat", "lon", "country")
        .seen()
    )


def terminal(app: hr.App, payments: hr.Stream, labels: hr.Stream) -> hr.Features:
    """Of the terminal: how busy it is, and how many frauds there became known within 28 days. One that two people tell
    of is one."""
    return (
        app.features("terminal", key="terminal_id", source=payments, ttl=KEPT)
        .over("1 h", "1 d", uses=hr.count())
        .over("28 d", of=labels, frauds=hr.distinct("case when fraud > 0 then payment_id end"))
        .seen()
    )


def customer(app: hr.App, payments: hr.Stream, acts: hr.Stream) -> hr.Features:
    """Of the customer: how many suspicious acts patterns have found."""
    return (
        app.features("customer", key="customer_id", source=payments, ttl=KEPT)
        .over("7 d", of=acts, acts=hr.count())
        .seen()
    )
