"""Rules on trial: what they would have done to payments of the past, with what was known of each at its moment."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import headrace as hr
from bank.decide import vectors
from bank.known import frauds
from bank.policy import thresholds
from bank.progress import Say, silent

Row = Mapping[str, Any]
Holds = Callable[[Row], bool]

ALL, DECIDED = "all of them", "as decided"
PIECE = 50_000
"""Payments that are looked at at a time: a bank's history is more than fits into memory."""
MINUTE = timedelta(minutes=1)
_WORDS = 2
"""Columns of a table that are words; the others are figures."""


@dataclass(slots=True, kw_only=True)
class Tried:
    """What was tried, and the payments that it took. `caught`: money of frauds; `new`: of those that were let through
    when it was decided. `wrongly`: genuine payments; `newly_wrongly`: those of them that were let through. A wrong PIN
    is neither, unless somebody said that it was a thief's: nobody's payment was stopped."""

    rule: str
    action: str | None = None
    payments: int = 0
    frauds: int = 0
    caught: Decimal = Decimal(0)
    new: Decimal = Decimal(0)
    wrongly: int = 0
    newly_wrongly: int = 0
    ruled: int = 0
    """An existing rule takes them too."""
    stopped: int = 0
    """They were stopped anyway."""

    def take(self, row: Row, *, fraud: bool, ruled: bool) -> None:
        """One payment more."""
        stopped = row["decision"] != "allow"
        self.payments += 1
        self.ruled += ruled
        self.stopped += stopped
        if fraud:
            self.frauds += 1
            self.caught += row["amount"]
            self.new += 0 if stopped else row["amount"]
        elif row["pin_ok"]:
            self.wrongly += 1
            self.newly_wrongly += not stopped

    @property
    def overlap(self) -> float:
        """The share of its payments that an existing rule takes too."""
        return round(self.ruled / self.payments, 4) if self.payments else 0.0

    @property
    def stopped_anyway(self) -> float:
        """The share of its payments that was stopped, by whatever it was."""
        return round(self.stopped / self.payments, 4) if self.payments else 0.0

    def as_dict(self) -> dict[str, Any]:
        counts = {name: value for name, value in asdict(self).items() if name not in ("ruled", "stopped")}
        return counts | {"overlap": self.overlap, "stopped_anyway": self.stopped_anyway}


@dataclass(frozen=True, slots=True)
class Proposed:
    """What a file would change: the rules, and the thresholds if it names them."""

    rules: tuple[hr.Rule, ...]
    thresholds: Mapping[str, float] | None

    def over(self, stands: hr.Policy | None) -> hr.Policy:
        """The policy if it was published now: the model stays, and thresholds do that the file does not name."""
        if stands is None or stands.model is None:
            return hr.Policy(rules=self.rules)
        return stands.revised(rules=self.rules, thresholds=self.thresholds)


def rules_of(file: Path) -> Proposed:
    """What a file has, if its rules are about what a decision knows."""
    policy = hr.Policy.read(file)
    policy.bound(vectors.columns)
    return Proposed(policy.rules, thresholds(file))


def trial(client: Any, new: Proposed, since: datetime, say: Say = silent) -> list[Tried]:
    """Each rule over the decisions of the lake, against what became known since; then all of them together with the
    model that stands, and what was decided."""
    pieces = list(_pieces(client, since))
    policies = client.policy("fraud")
    active = policies.current().active
    stands = None if active is None else active.policy
    if new.thresholds is not None and (stands is None or stands.model is None):
        say("no model stands: the thresholds are not tried")
    together = policies.judge(new.over(stands))
    lines: list[tuple[Tried, Holds]] = [
        (Tried(rule=rule.name, action=rule.action), any_holds(policies.judge, [rule])) for rule in new.rules
    ]
    lines.append((Tried(rule=ALL), lambda row: bool(together.decide(row).decision != "allow")))
    lines.append((Tried(rule=DECIDED), lambda row: bool(row["decision"] != "allow")))
    exists, bad = any_holds(policies.judge, stands.rules if stands else ()), frauds(client.query)
    tried, total = 0, sum(count for *_, count in pieces)
    for first, last, count in pieces:
        rows = client.query(f"select * from lake.decisions where {_within(first, last)}")  # noqa: S608 (two times)
        take(lines, rows, bad, exists)
        tried += count
        say(f"tried on {tried:,} of {total:,} payments")
    return [one for one, _ in lines]


def take(lines: Iterable[tuple[Tried, Holds]], rows: Iterable[Row], frauds: Container[str], exists: Holds) -> None:
    """Rows of decisions, which say what was known and decided; each line takes those that it holds for."""
    for row in rows:
        mine = [one for one, holds in lines if holds(row)]
        if mine:
            fraud, ruled = row["payment_id"] in frauds, exists(row)
            for one in mine:
                one.take(row, fraud=fraud, ruled=ruled)


def any_holds(judge: Callable[[hr.Policy], Any], rules: Iterable[hr.Rule]) -> Holds:
    """Whether one of the rules holds. They are asked as if they declined: a rule that could not be computed has a
    reason, too, and one that allows no other decision; what holds is what is then declined."""
    asked = judge(hr.Policy(rules=tuple(replace(rule, action="decline") for rule in rules)))
    return lambda row: bool(asked.decide(row).decision == "decline")


def _pieces(client: Any, since: datetime) -> Iterator[tuple[datetime, datetime, int]]:
    """Stretches of the time that there were payments in, and how many."""
    minutes = client.query(
        "select date_trunc('minute', at) as minute, count(*) as payments from lake.decisions "  # noqa: S608 (a time)
        f"where at >= '{since.isoformat()}' group by 1 order by 1"
    )
    if not minutes:
        (last,) = client.query("select max(at) as at from lake.decisions")
        raise hr.HeadraceError(
            f"no payment was decided since {since:%F %T %Z}",
            why="lake.decisions is empty" if last["at"] is None else f"the last was at {last['at']:%F %T %Z}",
            fix="name an earlier time: --from '-7 d'",
        )
    first, count = since, 0
    for one in minutes:
        count += one["payments"]
        if count >= PIECE or one is minutes[-1]:
            yield first, one["minute"] + MINUTE, count
            first, count = one["minute"] + MINUTE, 0


def _within(first: datetime, last: datetime) -> str:
    return f"at >= '{first.isoformat()}' and at < '{last.isoformat()}'"


def table(found: Iterable[Tried]) -> str:
    """For people."""
    heads = ("rule", "action", "payments", "frauds", "caught", "new", "wrongly", "newly wrongly", "overlap",
             "stopped anyway")  # fmt: skip
    lines = [heads] + [
        (one.rule, one.action or "", f"{one.payments:,}", f"{one.frauds:,}", f"{one.caught:,}", f"{one.new:,}",
         f"{one.wrongly:,}", f"{one.newly_wrongly:,}", f"{one.overlap:.0%}", f"{one.stopped_anyway:.0%}")
        for one in found
    ]  # fmt: skip
    widths = [max(len(line[place]) for line in lines) for place in range(len(heads))]
    aligned = [str.ljust if place < _WORDS else str.rjust for place in range(len(heads))]
    return "\n".join(
        "  ".join(align(text, width) for align, text, width in zip(aligned, line, widths, strict=True)).rstrip()
        for line in lines
    )
