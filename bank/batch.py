"""The same bank with an hourly job: it knows and decides the same, but only after the hour.

What it finds has been paid by then. All it can do is block the card, so that later payments of it are stopped. Where
somebody watches, its hour is a minute: the frauds there last seconds instead of days.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec

import headrace as hr

HOUR = timedelta(hours=1)
AT_ONCE = 50_000
"""So many payments are held at most."""
SETTLED = timedelta(seconds=2)
"""If nothing comes for so long, nothing more was recorded."""
_BEGIN = datetime.fromisoformat("2000-01-01T00:00Z")

Row = Mapping[str, Any]


@hr.event(topic="batch-flags", key="payment_id", time="at", id="payment_id")
class Flag:
    """A payment that the batch job would have stopped, its card being blocked by then."""

    payment_id: str
    card_id: str
    amount: hr.Money
    blocked: datetime
    """When the job found out about the card."""
    at: datetime


@hr.event(topic="decision-log", key="payment_id", time="at", id="payment_id")
class Recorded:
    """What the job needs of a decision, as `record` writes each once."""

    payment_id: str
    card_id: str
    amount: hr.Money
    pin_ok: bool
    decision: str
    at: datetime


@dataclass(slots=True)
class Batch:
    """The job: rows of decisions in the order of time, an hour at once."""

    every: timedelta = HOUR
    blocked: dict[str, datetime] = field(default_factory=dict)
    """Cards, and since when."""
    _found: dict[str, datetime] = field(default_factory=dict)

    def take(self, rows: Iterable[Row]) -> list[Flag]:
        """What would have been stopped of them."""
        flags = []
        for row in sorted(rows, key=lambda row: (row["at"], row["payment_id"])):
            card, at = row["card_id"], row["at"]
            since = self._found.get(card)
            if since is not None and since <= at:
                self.blocked.setdefault(card, since)
                flags.append(Flag(row["payment_id"], card, row["amount"], since, at))
            elif row["decision"] != "allow" and since is None:
                self._found[card] = self._end(at)
        return flags

    def _end(self, at: datetime) -> datetime:
        """Of the hour, when the job runs."""
        return _BEGIN + ((at - _BEGIN) // self.every + 1) * self.every


class Hourly:
    """The job beside a bank that runs, from its first opening on: what was decided before was not paid at its pace. It
    goes on in the log where it was, so each decision is taken once, however late it was recorded. Which cards it had
    blocked it has forgotten when it begins anew."""

    def __init__(self, client: Any, every: timedelta) -> None:
        self.job = Batch(every)
        # refused until `record` has begun
        self._log = client.consumer(Recorded, group="batch", start="latest", commit="manual")
        self._flags = client.producer(Flag)
        self._rows: list[Row] = []

    def run(self) -> int:
        """Over what was recorded since the last hour, or since that which failed; how many payments it was. A wrong PIN
        takes no money from anybody."""
        now, taken = datetime.now(UTC), 0
        while found := self._log.consume(AT_ONCE, timeout=SETTLED):
            self._rows += [msgspec.structs.asdict(one.event) for one in found if one.event.pin_ok]
            if len(self._rows) >= AT_ONCE:
                taken += self._take()
            if all(one.event.at > now for one in found):
                break
        return taken + self._take()

    def _take(self) -> int:
        self._flags.send_many(self.job.take(self._rows))
        self._flags.flush()
        self._log.commit()
        taken, self._rows = len(self._rows), []
        return taken


def stopped_by_the_hour(client: Any) -> None:
    """The job over all that is recorded by now, at the pace at which it was paid: an hour's. A wrong PIN takes no money
    from anybody."""
    rows = (msgspec.structs.asdict(one.event) for one in client.read(Recorded) if one.event.pin_ok)
    client.send(*Batch().take(rows))


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What both let through of the money that frauds asked for, and how many genuine payments each stopped."""

    frauds: int
    asked: Decimal
    let_through: Decimal
    let_through_by_batch: Decimal
    stopped_wrongly: int
    stopped_wrongly_by_batch: int

    @property
    def saved(self) -> Decimal:
        return self.asked - self.let_through

    @property
    def saved_by_batch(self) -> Decimal:
        return self.asked - self.let_through_by_batch

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"saved": self.saved, "saved_by_batch": self.saved_by_batch}

    def __str__(self) -> str:
        return (
            f"{self.frauds:,} frauds asked for {self.asked:,}\n"
            f"decided while the terminal waits: {self.saved:,} saved, {self.let_through:,} let through; "
            f"{self.stopped_wrongly:,} genuine payments stopped\n"
            f"decided an hour later:            {self.saved_by_batch:,} saved, "
            f"{self.let_through_by_batch:,} let through; {self.stopped_wrongly_by_batch:,} genuine payments stopped"
        )


def compare(rows: Iterable[Row], frauds: Iterable[str], every: timedelta = HOUR) -> Compared:
    """Decisions as they were made, against the job over the same rows. A wrong PIN takes no money from anybody."""
    paid = [row for row in rows if row["pin_ok"]]
    bad = set(frauds)
    by_batch = {flag.payment_id for flag in Batch(every).take(paid)}
    stopped = {row["payment_id"] for row in paid if row["decision"] != "allow"}
    amount = {row["payment_id"]: row["amount"] for row in paid}
    money = lambda ids: sum((amount[one] for one in ids), Decimal(0))  # noqa: E731
    return Compared(
        frauds=len(bad & amount.keys()),
        asked=money(bad & amount.keys()),
        let_through=money((bad & amount.keys()) - stopped),
        let_through_by_batch=money((bad & amount.keys()) - by_batch),
        stopped_wrongly=len(stopped - bad),
        stopped_wrongly_by_batch=len(by_batch - bad),
    )
