"""Events for `headrace demo`: payments as they come, and half a minute after a fraud what became known of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

from bank.events import Label, Payment
from bank.traffic import Traffic

KNOWN_AFTER = timedelta(seconds=30)
"""In life it takes days until a customer reads their account."""


def events(seed: int, now: Callable[[], datetime]) -> Iterator[Payment | Label]:
    """Without end, each dated when it is asked for."""
    unknown: deque[Label] = deque()
    for made in Traffic(seed).live(now):
        yield made.payment
        if made.fraud and made.payment.pin_ok:  # a wrong PIN takes no money, and nobody reads of it in their account
            unknown.append(made.label(made.payment.at + KNOWN_AFTER))
        while unknown and unknown[0].at <= made.payment.at:
            yield unknown.popleft()
