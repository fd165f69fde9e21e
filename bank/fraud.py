"""Fraud as it happens: five ways to take money, each as the payments it makes, from a moment on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import NamedTuple

from bank.people import Holder
from bank.places import CITIES, HOMES, Terminal

SECOND, MINUTE, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(days=1)


class Deed(NamedTuple):
    """A payment that somebody else makes with a card."""

    after: timedelta
    """The beginning."""
    holder: Holder
    terminal: Terminal
    amount: float
    pin_ok: bool = True
    own: bool = False
    """The holder's own payment after all, without which the others would not be strange."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How long each kind of fraud goes on: days in life, seconds where somebody watches."""

    terminal: timedelta
    stolen: timedelta
    travel: timedelta
    guessing: timedelta


LIFE = Pace(terminal=28 * DAY, stolen=3 * DAY, travel=15 * MINUTE, guessing=2 * MINUTE)
WATCHED = Pace(terminal=40 * SECOND, stolen=20 * SECOND, travel=4 * SECOND, guessing=3 * SECOND)


@dataclass(frozen=True, slots=True)
class Thieves:
    """Who knows where terminals stand and which cards there are."""

    random: Random
    holders: list[Holder]
    terminals: list[list[Terminal]]
    pace: Pace

    def large(self) -> Iterator[Deed]:
        """One payment, far larger than any the card has made."""
        holder = self._someone()
        yield Deed(0 * SECOND, holder, self.random.choice(holder.usual), self.random.uniform(600, 2500))

    def bad_terminal(self, terminal: Terminal | None = None) -> Iterator[Deed]:
        """A terminal that copies cards: small payments of many cards, unlike others only in where they are made."""
        place = terminal or self.random.choice(self.terminals[self.random.randrange(HOMES)])
        near = [holder for holder in self.random.sample(self.holders, min(400, len(self.holders)))
                if holder.city == place.city]  # fmt: skip
        for number, holder in enumerate(near[:20]):
            amount = max(1.0, self.random.gauss(holder.mean, holder.mean / 3))
            yield Deed(self.pace.terminal * number / 20, holder, place, amount)

    def stolen(self) -> Iterator[Deed]:
        """A card in other hands, at its usual shops, for five times as much."""
        holder = self._someone()
        for number in range(10):
            amount = 5 * max(1.0, self.random.gauss(holder.mean, holder.mean / 2))
            yield Deed(self.pace.stolen * number / 10, holder, self.random.choice(holder.usual), amount)

    def travel(self) -> Iterator[Deed]:
        """The card pays at home, and minutes later on another continent."""
        holder = self._someone()
        far = self.terminals[self.random.randrange(HOMES, len(CITIES))]
        yield Deed(0 * SECOND, holder, self.random.choice(holder.usual), holder.mean, own=True)
        for number in range(1, 4):
            amount = self.random.uniform(80, 500)
            yield Deed(self.pace.travel * number / 3, holder, self.random.choice(far), amount)

    def guessing(self) -> Iterator[Deed]:
        """Three wrong PINs, then the right one and as much as there is."""
        holder = self._someone()
        terminal = self.random.choice(self.terminals[holder.city])
        for number in range(3):
            yield Deed(self.pace.guessing * number / 5, holder, terminal, self.random.uniform(150, 400), pin_ok=False)
        for number in (3, 4):
            yield Deed(self.pace.guessing * number / 5, holder, terminal, self.random.uniform(150, 400))

    def _someone(self) -> Holder:
        return self.random.choice(self.holders)


Way = Callable[[Thieves], Iterator[Deed]]
WAYS: dict[str, Way] = {
    "large": Thieves.large,
    "terminal": Thieves.bad_terminal,
    "stolen": Thieves.stolen,
    "travel": Thieves.travel,
    "guessing": Thieves.guessing,
}
