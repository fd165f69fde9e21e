"""The bank's customers and their cards: where they live, what they usually spend, where and when."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random

import headrace as hr
from bank.events import Card, Customer
from bank.places import CITIES, HOMES, Terminal
from bank.tokens import MADE_UP, last4, token

USUAL = 12
"""Terminals a customer goes to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A card and the habits of who holds it."""

    card_id: str
    last4: str
    customer_id: str
    city: int
    mean: float
    """Of an amount; half of it is the spread."""
    a_day: float
    """Payments."""
    hour: float
    """Around which they come."""
    usual: tuple[Terminal, ...]


def holders(random: Random, count: int, terminals: list[list[Terminal]]) -> list[Holder]:
    """Every fifth customer has a second card. The numbers live here and nowhere else."""
    found = []
    for index in range(count):
        number = f"4000{random.randrange(10**12):012}"
        city = random.randrange(HOMES)
        found.append(
            Holder(
                card_id=token(number, MADE_UP),
                last4=last4(number),
                customer_id=f"customer-{index * 5 // 6}",
                city=city,
                mean=random.uniform(5, 100),
                a_day=random.uniform(0.3, 4),
                hour=random.uniform(9, 19),
                usual=tuple(random.sample(terminals[city], min(USUAL, len(terminals[city])))),
            )
        )
    return found


def customer(holder: Holder, at: datetime) -> Customer:
    """The holder as the bank knows them."""
    limit = hr.money(round(holder.mean) * 20 + 500)
    return Customer(holder.customer_id, CITIES[holder.city][0], at - timedelta(days=365), limit, at)


def card(holder: Holder, at: datetime) -> Card:
    """The holder's card as the bank gave it out."""
    return Card(holder.card_id, holder.customer_id, holder.last4, at)
