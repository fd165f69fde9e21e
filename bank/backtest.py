"""Rules on trial: what they would have done to payments of the past, with what was known of each at its moment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import headrace as hr
from bank.decide import vectors

Row = Mapping[str, Any]
Holds = Callable[[Row], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """A rule's payments. `caught`: money of frauds; `new`: of those that were let through when it was decided.
    `wrongly`: genuine payments, and `newly_wrongly` those of them that were let through."""

    rule: str
    action: str
    payments: int
    frauds: int
    caught: Decimal
    new: Decimal
    wrongly: int
    newly_wrongly: int
    overlap: float
    """The share of its payments that was stopped anyway."""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def tried(name: str, action: str, holds: Holds, rows: Iterable[Row], frauds: set[str]) -> Tried:
    """One rule over rows of decisions, which say what was known and decided."""
    hits = [row for row in rows if holds(row)]
    bad = [row for row in hits if row["payment_id"] in frauds]
    stopped = {row["payment_id"] for row in hits if row["decision"] != "allow"}
    genuine = [row for row in hits if row["payment_id"] not in frauds]
    return Tried(
        rule=name,
        action=action,
        payments=len(hits),
        frauds=len(bad),
        caught=sum((row["amount"] for row in bad), Decimal(0)),
        new=sum((row["amount"] for row in bad if row["payment_id"] not in stopped), Decimal(0)),
        wrongly=len(genuine),
        newly_wrongly=sum(row["payment_id"] not in stopped for row in genuine),
        overlap=round(len(stopped) / len(hits), 4) if hits else 0.0,
    )


def rules_of(file: Path) -> tuple[hr.Rule, ...]:
    """The rules of a file, if they are about what a decision knows."""
    policy = hr.Policy.read(file)
    policy.bound(vectors.columns)
    return policy.rules


def trial(client: Any, rules: Iterable[hr.Rule], since: datetime) -> list[Tried]:
    """Each rule over the decisions of the lake, against what became known since."""
    rows = client.query(f"select * from lake.decisions where at >= '{since.isoformat()}'")  # noqa: S608 (a time)
    labels = client.query("select payment_id, max_by(fraud, at) as fraud from lake.labels group by payment_id")
    frauds = {one["payment_id"] for one in labels if one["fraud"]}
    found = []
    for rule in rules:
        judge = client.policy("fraud").judge(hr.Policy(rules=[rule]))
        found.append(
            tried(rule.name, rule.action, lambda row, judge=judge: bool(judge.decide(row).reasons), rows, frauds)
        )
    return found


def table(found: Iterable[Tried]) -> str:
    """For people."""
    heads = ("rule", "action", "payments", "frauds", "caught", "new", "wrongly", "newly wrongly", "overlap")
    lines = [heads] + [
        (one.rule, one.action, f"{one.payments:,}", f"{one.frauds:,}", f"{one.caught:,}", f"{one.new:,}",
         f"{one.wrongly:,}", f"{one.newly_wrongly:,}", f"{one.overlap:.0%}")
        for one in found
    ]  # fmt: skip
    widths = [max(len(line[place]) for line in lines) for place in range(len(heads))]
    return "\n".join("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
                     for line in lines)  # fmt: skip
