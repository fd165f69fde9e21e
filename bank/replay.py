"""A decision once more: computed from the log alone, with what it had seen, and compared to the last bit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import msgspec

import headrace as hr
from bank.decide import decide
from bank.decided import Decided
from bank.events import Customer, Label, Payment
from bank.progress import Say

SOME = 100_000
"""So many records are read before anybody is told how far it is."""


@hr.event(topic="payments.decide.degraded", time="at", id="payment_id")
class Instead:
    """What a terminal was told when the flow had not answered in time."""

    payment_id: str
    decision: str
    reasons: list[str]
    why: str
    by: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Logged:
    """An event and where it stands."""

    event: Any
    topic: str
    partition: int
    offset: int

    @property
    def place(self) -> str:
        return f"{self.topic}/{self.partition}/{self.offset}"


@dataclass(slots=True)
class Past:
    """What is on the log, found by the keys that decisions are made with."""

    cards: dict[str, list[Logged]] = field(default_factory=lambda: defaultdict(list))
    terminals: dict[str, list[Logged]] = field(default_factory=lambda: defaultdict(list))
    customers: dict[str, list[Logged]] = field(default_factory=lambda: defaultdict(list))
    decided: dict[str, Decided] = field(default_factory=dict)
    """The first by payment: of two twins one is kept."""
    instead: dict[str, Instead] = field(default_factory=dict)

    def add(self, event: Any, topic: str, partition: int, offset: int) -> None:
        logged = Logged(event, topic, partition, offset)
        match event:
            case Decided():
                self.decided.setdefault(event.payment_id, event)
            case Instead():
                self.instead.setdefault(event.payment_id, event)
            case Payment():
                self.cards[event.card_id].append(logged)
                self.customers[event.customer_id].append(logged)
                self.terminals[event.terminal_id].append(logged)
            case Label():
                self.terminals[event.terminal_id].append(logged)

    def seen_by(self, told: Decided) -> tuple[list[Logged], list[Logged]]:
        """All that the decision can have seen, as it came, the payment itself last. Beside it those of them that were
        paid with other cards of the customer, the newest last: acts found in these count, and only their sum says
        which were known. One that the terminal had seen was known to the customer before."""
        rows: dict[str, Logged] = {}
        for candidates, seen in (
            (self.cards[told.card_id], hr.Seen.read(told.seen_card)),
            (self.terminals[told.terminal_id], hr.Seen.read(told.seen_terminal)),
        ):
            rows |= {one.place: one for one in candidates if seen.has(one.topic, one.partition, one.offset)}
        paid = self.customers[told.customer_id]
        others = [one for one in paid if one.event.card_id != told.card_id and one.event.at <= told.at]
        others = [one for one in others if one.place not in rows]
        rows |= {one.place: one for one in others}
        own = next((one for one in self.cards[told.card_id] if one.event.payment_id == told.payment_id), None)
        if own is None:
            raise hr.HeadraceError(
                f"the payment {told.payment_id} is not on the log",
                why="its decision is, but the topic payments has no such payment any more",
                fix="`headrace topics` says how long payments are kept; let it be as long as decisions are",
            )
        del rows[own.place]
        return [*_as_it_came(rows.values()), own], _as_it_came(others)


def _as_it_came(rows: Iterable[Logged]) -> list[Logged]:
    """By time, and those of a partition in their own order: a pattern takes them so."""
    latest: dict[tuple[str, int], datetime] = {}
    placed = []
    for one in sorted(rows, key=lambda one: one.offset):
        at = (one.topic, one.partition)
        latest[at] = max(latest.get(at, one.event.at), one.event.at)
        placed.append((latest[at], *at, one.offset, one))
    return [one for *_, one in sorted(placed, key=lambda place: place[:-1])]


def again(past: Past, told: Decided, policies: Mapping[str, hr.Policy]) -> Decided:
    """The decision as it comes out of what it had seen; `policies` by their place in the log."""
    rows, others = past.seen_by(told)
    found = _decide(rows, told, policies)
    if found.seen_terminal != told.seen_terminal:  # on the way to another key, rows can pass each other
        places = {one.place for one in past.terminals[told.terminal_id]}
        passed = [one.place for one in rows[:-1] if one.place in places]
        late = hr.Seen.read(found.seen_terminal).more_than(hr.Seen.read(told.seen_terminal), passed)
        rows = [one for one in rows if one.place not in late]
        found = _decide(rows, told, policies)
    while found.seen_customer != told.seen_customer and others:  # and so can those of two cards
        newest = others.pop()
        rows = [one for one in rows if one.place != newest.place]
        found = _decide(rows, told, policies)
    return found


def _decide(rows: list[Logged], told: Decided, policies: Mapping[str, hr.Policy]) -> Decided:
    widths = {topic: 1 + max((one.partition for one in rows if one.topic == topic), default=0)
              for topic in ("payments", "labels")}  # fmt: skip
    now = told.at + timedelta(days=1)
    with hr.testing.run(decide, partitions=widths | {"customers": 1}, now=now, realtime=True) as t:
        for one in rows[:-1]:
            t.send(one.event, partition=one.partition, offset=one.offset)
        if told.policy_seen:
            t.policy("fraud", _policy(policies, told.policy_seen), offset=_offset(told.policy_seen))
        if told.shadow is not None:
            place = msgspec.json.decode(told.shadow)["policy_seen"]
            t.policy("fraud", _policy(policies, place), shadow=True, offset=_offset(place))
        if told.home is not None and told.day_limit is not None and told.seen_profile is not None:
            # the profile that it met is in its own row
            t.send(Customer(told.customer_id, told.home, told.at, told.day_limit, told.seen_profile))
        t.send(rows[-1].event, partition=rows[-1].partition, offset=rows[-1].offset)
        return Decided(**t.read("decisions.raw")[-1].as_dict())


def differences(told: Decided, found: Decided) -> dict[str, tuple[Any, Any]]:
    """What is not the same, to the last bit, by column: as it was told, and as it comes out now."""
    names = msgspec.structs.fields(Decided)
    both = ((one.name, getattr(told, one.name), getattr(found, one.name)) for one in names)
    return {name: (one, other) for name, one, other in both if one != other}


def read(client: Any) -> Past:
    """All of the log that decisions are made of."""
    past = Past()
    for event in (Payment, Label, Decided):
        for record in client.read(event):
            past.add(record.event, record.topic, record.partition, record.offset)
    return past


def about(client: Any, payment_id: str, say: Say) -> Past:
    """As much of the log as the decision on one payment is made of, and what a terminal was told instead of it."""
    past = Past()

    def take(what: str, kind: type, wanted: Callable[[Any], bool]) -> None:
        say(f"reading {what}")
        for number, record in enumerate(client.read(kind), 1):
            if wanted(record.event):
                past.add(record.event, record.topic, record.partition, record.offset)
            if number % SOME == 0:
                say(f"read {number:,} {what}")

    take("degraded answers", Instead, lambda one: one.payment_id == payment_id)
    take("decisions", Decided, lambda one: one.payment_id == payment_id)
    told = past.decided.get(payment_id)
    if told is None:
        raise _undecided(payment_id, past.instead.get(payment_id))
    take("payments", Payment, lambda one: one.card_id == told.card_id or one.customer_id == told.customer_id
         or one.terminal_id == told.terminal_id)  # fmt: skip
    take("labels", Label, lambda one: one.terminal_id == told.terminal_id)
    return past


def _undecided(payment_id: str, instead: Instead | None) -> hr.HeadraceError:
    what = f"no decision about {payment_id!r} is on the log"
    if instead is None:
        return hr.HeadraceError(what, why="decisions.raw has none", fix="`headrace tail decisions` shows the last ones")
    return hr.HeadraceError(
        what,
        why=f"the terminal was told {instead.decision} by the {instead.by} ({instead.why}), and the flow has not "
        "decided since",
        fix="start it: headrace run decide --realtime",
    )


def _policy(policies: Mapping[str, hr.Policy], place: str) -> hr.Policy:
    """The one at a place of the log."""
    if place not in policies:
        raise hr.HeadraceError(
            f"the policy at {place} is not on the log",
            why="the decision names it, and nothing that can be read was published there: "
            f"there is {', '.join(policies) or 'none'}",
            fix="look for it with `headrace policy history`; a topic that was made again has other places",
        )
    return policies[place]


def _offset(place: str) -> int:
    return int(place.rpartition("@")[2])
