"""Made-up traffic: the normal life of some thousand cards, and every kind of fraud in it, each payment with its truth.

The same seed gives the same people, terminals and payments. `history` is days of it, as fast as Python goes; `live` is
dated as it is asked for, with frauds that last seconds instead of weeks, so that there is something to see.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import accumulate, count, cycle
from random import Random

import headrace as hr
from bank.events import Card, Customer, Label, Payment
from bank.fraud import LIFE, WATCHED, WAYS, Deed, Thieves
from bank.people import Holder, card, customer, holders
from bank.places import HOMES, Terminal, terminals
from bank.tokens import letters

SEED = 2026
CARDS, TERMINALS = 5_000, 10_000
A_DAY = {"large": 6.0, "terminal": 1.5, "stolen": 2.0, "travel": 2.0, "guessing": 2.0}
"""Frauds that begin on a day, for 5,000 cards; one payment in two hundred belongs to one."""
EVERY = timedelta(seconds=4)
"""How often a fraud begins where somebody watches."""
BAD = 5
"""Terminals that copy cards for as long as somebody watches: less than 28 days."""


@dataclass(frozen=True, slots=True)
class Made:
    """A payment and what it is: the kind of fraud, or "" if the holder made it."""

    payment: Payment
    fraud: str = ""

    def label(self, at: datetime, by: str = "customer") -> Label:
        """What became known of it at `at`."""
        paid = self.payment
        return Label(
            payment_id=paid.payment_id,
            card_id=paid.card_id,
            terminal_id=paid.terminal_id,
            customer_id=paid.customer_id,
            amount=paid.amount,
            fraud=int(bool(self.fraud)),
            by=by,
            at=at,
        )


@dataclass(slots=True)
class Traffic:
    """People, terminals, and what they do."""

    seed: int = SEED
    cards: int = CARDS
    shops: int = TERMINALS
    harm: float = 1.0
    """How many times as many frauds as usual."""
    random: Random = field(init=False)
    terminals: list[list[Terminal]] = field(init=False)
    holders: list[Holder] = field(init=False)

    def __post_init__(self) -> None:
        self.random = Random(self.seed)  # noqa: S311 (made-up data, not a secret)
        self.terminals = terminals(self.random, self.shops)
        self.holders = holders(self.random, self.cards, self.terminals)

    def customers(self, at: datetime) -> list[Customer]:
        """Everybody, as known since `at`."""
        return list({holder.customer_id: customer(holder, at) for holder in self.holders}.values())

    def given_out(self, at: datetime) -> list[Card]:
        """Every card there is; there are no payments with others."""
        return [card(holder, at) for holder in self.holders]

    def history(self, start: datetime, days: int) -> Iterator[Made]:
        """So many days from `start` on, in the order of time."""
        thieves = Thieves(self.random, self.holders, self.terminals, LIFE)
        deeds: list[tuple[datetime, int, str, Deed]] = []
        number, order = count(), count()
        for day in range(days):
            morning = start + timedelta(days=day)
            for way, begin in WAYS.items():
                for _ in range(self._poisson(A_DAY[way] * self.harm * self.cards / CARDS)):
                    first = morning + timedelta(hours=self.random.uniform(0, 24))
                    for deed in begin(thieves):
                        heapq.heappush(deeds, (first + deed.after, next(order), way, deed))
            made = [(at, next(order), "", deed) for at, deed in self._day(morning)]
            evening = morning + timedelta(days=1)
            while deeds and deeds[0][0] < evening:
                made.append(heapq.heappop(deeds))
            made.sort()
            for at, _, way, deed in made:
                yield _made(f"h-{self.seed}-{next(number):07}", deed, way, at)

    def live(self, now: Callable[[], datetime], *, every: timedelta = EVERY) -> Iterator[Made]:
        """Payments without end, each dated when it is asked for; every so often a fraud begins among them."""
        thieves = Thieves(self.random, self.holders, self.terminals, WATCHED)
        bad = self.random.sample([one for city in self.terminals[:HOMES] for one in city], BAD)
        weights = list(accumulate(holder.a_day for holder in self.holders))
        deeds: list[tuple[datetime, int, str, Deed]] = []
        ways, order, begun = cycle(WAYS), count(), now()
        for number in count():
            at = now()
            if at >= begun:
                begun, way = at + every, next(ways)
                chosen = thieves.bad_terminal(self.random.choice(bad)) if way == "terminal" else WAYS[way](thieves)
                for deed in chosen:
                    heapq.heappush(deeds, (at + deed.after, next(order), way, deed))
            if deeds and deeds[0][0] <= at:
                _, _, way, deed = heapq.heappop(deeds)
            else:
                way, deed = "", self._usual(self.random.choices(self.holders, cum_weights=weights)[0])
            yield _made(f"p-{letters(f'{int(at.timestamp() * 1e6):x}')}-{number}", deed, way, at)

    def _day(self, morning: datetime) -> Iterator[tuple[datetime, Deed]]:
        """What the holders do on a day. One in a hundred spends it in another city."""
        for holder in self.holders:
            away = self.terminals[self.random.randrange(HOMES)] if self.random.random() < 0.01 else None
            for _ in range(self._poisson(holder.a_day)):
                at = morning + timedelta(hours=self.random.gauss(holder.hour, 3) % 24)
                yield at, self._usual(holder, away)

    def _usual(self, holder: Holder, away: list[Terminal] | None = None) -> Deed:
        """A payment like others of the holder; one PIN in two hundred is mistyped."""
        terminal = self.random.choice(away or holder.usual)
        amount = max(0.5, self.random.gauss(holder.mean, holder.mean / 2))
        return Deed(timedelta(0), holder, terminal, amount, pin_ok=self.random.random() > 0.005)

    def _poisson(self, mean: float) -> int:
        limit, product, found = math.exp(-mean), self.random.random(), 0
        while product > limit:
            product *= self.random.random()
            found += 1
        return found


def _made(payment_id: str, deed: Deed, way: str, at: datetime) -> Made:
    payment = Payment(
        payment_id=payment_id,
        card_id=deed.holder.card_id,
        customer_id=deed.holder.customer_id,
        terminal_id=deed.terminal.id,
        amount=hr.money(f"{deed.amount:.2f}"),
        country=deed.terminal.country,
        at=at,
        lat=deed.terminal.lat,
        lon=deed.terminal.lon,
        last4=deed.holder.last4,
        pin_ok=deed.pin_ok,
    )
    return Made(payment, "" if deed.own else way)
