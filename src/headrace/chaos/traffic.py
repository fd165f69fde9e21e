"""Traffic: transfers and changes of accounts, made from a seed and sent without pause until told to stop."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from headrace.base.errors import LogError
from headrace.chaos.history import History, Outcome
from headrace.chaos.workload import Account, Transfer
from headrace.log.broker import Broker
from headrace.log.produce import Producer

START = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=2)
"""Not long ago: a broker that is killed forgets producers whose records are dated more than 24 days back (docs/log.md),
and takes what they repeat for new."""
STEP = timedelta(milliseconds=10)
"""Event time between two transfers. It is not the clock's: on a day, every run of a seed has the same times."""
LATE = timedelta(minutes=2)
FUTURE = datetime(2100, 1, 1, tzinfo=UTC)
CARDS, ACCOUNTS, BRANCHES = 40, 200, 8
ACCOUNT_EVERY = 20
"""Transfers for each change of an account."""
_TURN = timedelta(milliseconds=100)


class Traffic:
    """Sends on a thread of its own. Others may send through it too: a burst, poison, the end."""

    def __init__(self, broker: Broker, history: History, *, seed: int, rate: int) -> None:
        self._broker, self._history, self._rate = broker, history, rate
        self._chance = random.Random(f"traffic {seed}")
        self._alone = threading.Lock()
        self._stop = threading.Event()
        self._made = self._changed = 0
        self._transfers = Producer(broker, Transfer, give_up_after="5 min")
        self._accounts = Producer(broker, Account, give_up_after="5 min")
        self._send_accounts(ACCOUNTS)  # each opened once; from then on they move, so their number stands
        self._thread = threading.Thread(target=self._run, name="traffic", daemon=True)
        self._thread.start()

    @property
    def sent(self) -> int:
        return self._made

    def burst(self, count: int, *, card: str | None = None) -> None:
        """Many at once, of one card if told."""
        with self._alone:
            self._send(count, card=card)

    def poison(self, values: list[bytes]) -> None:
        """Records that are no transfers."""
        with self._alone:
            client = self._broker.producer({"enable.idempotence": True})
            for number, value in enumerate(values):
                client.produce(self._transfers.topic, value, f"card-{number}")
            outcome: Outcome = "ok" if client.flush(120) == 0 else "unknown"
        self._history.note("send", f"{len(values)} of poison", outcome)

    def future(self, count: int) -> None:
        """Transfers from a clock that is wrong: they are dead letters, and time does not follow them."""
        with self._alone:
            made = self._transfers_of(count)
            self._deliver(Transfer(t.transfer, t.card, t.payer, t.payee, t.cents, FUTURE) for t in made)

    def close(self) -> datetime:
        """Stops, and lets event time pass, so that every window before it closes. Gives the time it then is."""
        self._stop.set()
        self._thread.join()
        end = START + self._made * STEP + timedelta(hours=1)
        self._deliver(self._closing(end))
        for producer in (self._transfers, self._accounts):
            producer.close()
        return end

    def _run(self) -> None:
        while not self._stop.wait(_TURN.total_seconds()):
            with self._alone:
                self._send(max(1, round(self._rate * _TURN.total_seconds())))

    def _send(self, count: int, *, card: str | None = None) -> None:
        before = self._made // ACCOUNT_EVERY
        self._deliver(self._transfers_of(count, card))
        self._send_accounts(self._made // ACCOUNT_EVERY - before)

    def _deliver(self, made: Any) -> None:
        first = self._made
        try:
            self._transfers.send_many(made)
            self._transfers.flush()
            outcome: Outcome = "ok"
        except LogError:
            outcome = "unknown"  # some of them may be on the log: it is asked in the end
        self._history.sent(first, self._made, outcome)

    def _transfers_of(self, count: int, card: str | None = None) -> Iterator[Transfer]:
        chance = self._chance
        for _ in range(count):
            number = self._made
            self._made += 1
            at = START + number * STEP
            luck = chance.random()
            if luck < 0.01:
                at -= LATE  # behind every window that is open
            elif luck < 0.3:
                at -= timedelta(milliseconds=chance.randrange(4000))
            yield Transfer(
                transfer=number,
                card=card or f"card-{chance.randrange(CARDS)}",
                payer=f"a{chance.randrange(ACCOUNTS)}",
                payee=f"a{chance.randrange(ACCOUNTS)}",
                cents=chance.randrange(10_000) if luck < 0.98 else 0,
                at=max(at, START),
            )

    def _closing(self, end: datetime) -> Iterator[Transfer]:
        """One for each card, and so for each partition."""
        for card in range(CARDS):
            self._made += 1
            yield Transfer(self._made - 1, f"card-{card}", "a0", "a1", 1, end)

    def _send_accounts(self, count: int) -> None:
        chance = self._chance
        for _ in range(count):
            number = self._changed
            self._changed += 1
            new = number < ACCOUNTS
            self._accounts.send(
                Account(
                    account=f"a{number if new else chance.randrange(ACCOUNTS)}",
                    branch=f"b{chance.randrange(BRANCHES)}",
                    cents=chance.randrange(1_000_000),
                    changed=START + number * STEP,
                )
            )
        if count:
            try:
                self._accounts.flush()
            except LogError:
                self._history.note("send", f"{count} accounts", "unknown")
