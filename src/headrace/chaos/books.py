"""The books: what must stand in every output, computed anew from the log of transfers and accounts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from headrace.base.duration import duration
from headrace.base.errors import DataError
from headrace.chaos.traffic import FUTURE
from headrace.chaos.workload import WINDOW, Account, Transfer
from headrace.log.record import Decoder

Place = tuple[int, int]
"""Partition and offset."""
Window = tuple[str, datetime]
"""A card and the start of a window."""

SIZE = duration(WINDOW)


@dataclass(slots=True)
class Books:
    """Filled record by record."""

    sent: Counter[int] = field(default_factory=Counter)
    """How often each transfer is on the log: once, or its producer has doubled it."""
    made: set[int] = field(default_factory=set)
    """Transfers that count: readable, of now, and of more than nothing."""
    dead: set[Place] = field(default_factory=set)
    windows: dict[Window, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0]))
    """Transfers and cents, of all that count."""
    balances: Counter[str] = field(default_factory=Counter)
    moves: Counter[str] = field(default_factory=Counter)
    window_of: dict[int, tuple[Window, int]] = field(default_factory=dict)
    accounts: dict[str, tuple[str, int]] = field(default_factory=dict)

    def take_transfers(self, messages: Iterable[Any]) -> None:
        decode = Decoder([Transfer]).decode
        for message in messages:
            try:
                transfer = decode(message)
            except DataError:
                self.dead.add((message.partition(), message.offset()))
                continue
            self.sent[transfer.transfer] += 1
            if transfer.at == FUTURE:
                self.dead.add((message.partition(), message.offset()))
            elif transfer.cents > 0:
                self.book(transfer)

    def take_accounts(self, messages: Iterable[Any]) -> None:
        """In the order of their changes, which is the order in which they were made."""
        decode = Decoder([Account]).decode
        for account in sorted((decode(message) for message in messages), key=lambda account: account.changed):
            self.accounts[account.account] = (account.branch, account.cents)

    @property
    def branches(self) -> dict[str, tuple[int, int]]:
        """Accounts and cents of each branch that has any."""
        found: dict[str, tuple[int, int]] = {}
        for branch, cents in self.accounts.values():
            count, total = found.get(branch, (0, 0))
            found[branch] = count + 1, total + cents
        return found

    def book(self, transfer: Transfer) -> None:
        self.made.add(transfer.transfer)
        window = transfer.card, transfer.at - (transfer.at - datetime.min.replace(tzinfo=transfer.at.tzinfo)) % SIZE
        counted = self.windows[window]
        counted[0] += 1
        counted[1] += transfer.cents
        self.window_of[transfer.transfer] = window, transfer.cents
        for account, cents in ((transfer.payer, -transfer.cents), (transfer.payee, transfer.cents)):
            self.balances[account] += cents
            self.moves[account] += 1


def end_of(window: Window) -> datetime:
    return window[1] + timedelta(seconds=SIZE.total_seconds())
