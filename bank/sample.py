"""Made-up payments for the demo: the same cards, habits and surprises for the same seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from random import Random

import headrace as hr
from bank.events import Payment

CARDS = 40
HOMES = ("DE", "FR", "IT", "NL", "PL", "ES")
ABROAD = ("BR", "ID", "US", "ZA")


def events(seed: int, now: Callable[[], datetime]) -> Iterator[Payment]:
    """Payments without end, each dated when it is asked for, up to three seconds ago: terminals are not prompt."""
    random = Random(seed)  # noqa: S311 (made-up data, not a secret)
    while True:
        card = random.randint(1, CARDS)
        home = HOMES[card % len(HOMES)]
        cents = round(random.lognormvariate(7.5, 1.0))
        at = now() - timedelta(milliseconds=random.randint(0, 3000))
        yield Payment(
            payment_id=f"p-{at:%Y%m%d%H%M%S%f}",
            card_id=f"card-{card}",
            customer_id=f"customer-{card // 2}",
            terminal_id=f"{home.lower()}-{random.randint(1, 9)}",
            amount=hr.money(f"{cents // 100}.{cents % 100:02}"),
            country=home if random.random() < 0.97 else random.choice(ABROAD),
            at=at,
        )
