"""What the decision flow would have known of made-up payments: days of traffic through the reference engine, no JVM."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

import headrace as hr
from bank.decide import decide
from bank.progress import Say, silent
from bank.traffic import Made, Traffic

DELAY = timedelta(days=7)
"""How long it takes until a fraud is known to be one."""


@dataclass(frozen=True, slots=True)
class Lived:
    """A history: every payment, and the row that `decide` wrote of it."""

    made: list[Made]
    rows: list[dict[str, Any]]

    @property
    def frauds(self) -> dict[str, str]:
        """The kind of each fraud, by payment."""
        return {one.payment.payment_id: one.fraud for one in self.made if one.fraud}


def live_through(
    traffic: Traffic,
    start: datetime,
    days: int,
    policy: hr.Policy | None = None,
    say: Say = silent,
) -> Lived:
    """Days of traffic, decided by a policy; frauds become known `DELAY` later."""
    made = list(traffic.history(start, days))
    now = start + timedelta(days=days)
    labels = [one.label(one.payment.at + DELAY) for one in made if one.fraud]
    events = heapq.merge(
        (one.payment for one in made),
        (label for label in labels if label.at < now),
        key=lambda event: event.at,
    )
    with hr.testing.run(decide, now=now, realtime=True) as t:
        if policy is not None:
            t.policy("fraud", policy)
        t.send(*traffic.customers(start))
        for day, some in groupby(events, key=lambda event: (event.at - start).days):
            t.send(*some)
            say(f"lived through {day + 1} of {days} days")
        return Lived(made, [row.as_dict() for row in t.read("decisions.raw")])
