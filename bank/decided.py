"""A decision as it is on the log: the payment, all that was known, what was said, and by which versions.

`decide` writes it to `decisions.raw`, once for each of its twins; `record` reads it from there.
"""

from __future__ import annotations

from datetime import datetime

import headrace as hr


@hr.event(topic="decisions.raw", key="payment_id", time="at", id="payment_id")
class Decided:
    """What was decided about a payment."""

    payment_id: str
    card_id: str
    customer_id: str
    terminal_id: str
    amount: hr.Money
    country: str
    at: datetime
    lat: float | None
    lon: float | None
    last4: str | None
    pin_ok: bool

    spent_1h: hr.Money
    spent_1d: hr.Money
    spent_7d: hr.Money
    spent_30d: hr.Money
    times_1h: int
    times_1d: int
    times_7d: int
    times_30d: int
    misses_5min: int
    misses_1d: int
    since: float | None
    """Seconds since the payment before."""
    km: float | None
    """From the payment before."""
    speed_kmh: float | None
    usual: float | None
    """The mean amount of the card's other payments in 30 days."""
    ratio: float | None
    """The amount over the usual one."""
    z: float | None
    """The amount less the usual one, over their spread."""
    uses_1h: int
    uses_1d: int
    frauds_28d: int
    """That became known at the terminal."""
    acts_7d: int
    """Suspicious ones, of the customer."""
    home: str | None
    abroad: bool | None
    day_limit: hr.Money | None

    seen_card: str
    """The last offset per partition that was applied to the card; equal ones mean equal features."""
    seen_terminal: str
    seen_customer: str
    seen_profile: datetime | None
    """Since when the profile says what was taken from it."""

    decision: str
    """allow, review or decline."""
    reasons: list[str]
    score: float | None
    rules_version: str
    model_version: str
    policy_seen: str
    shadow: str | None
