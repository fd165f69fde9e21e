"""Rules on trial: money caught, payments stopped wrongly, and what was stopped anyway."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from bank.backtest import table, tried


def row(id: str, amount: str, decision: str) -> dict[str, Any]:
    return {"payment_id": id, "amount": Decimal(amount), "decision": decision}


ROWS = [row("a", "100", "decline"), row("b", "40", "allow"), row("c", "70", "allow"), row("d", "90", "review")]


def test_a_rule_is_measured_against_what_became_known() -> None:
    found = tried("large", "decline", lambda row: row["amount"] >= 70, ROWS, frauds={"a", "b", "c"})

    assert (found.payments, found.frauds) == (3, 2)
    assert (found.caught, found.new) == (Decimal(170), Decimal(70))  # c was let through
    assert (found.wrongly, found.newly_wrongly) == (1, 0)  # d was under review anyway
    assert found.overlap == 0.6667
    assert tried("never", "review", lambda _: False, ROWS, set()).overlap == 0.0


def test_the_table_has_a_line_a_rule() -> None:
    found = tried("large", "decline", lambda row: row["amount"] >= 70, ROWS, frauds={"a"})
    assert table([found]).splitlines() == [
        "rule   action   payments  frauds  caught  new  wrongly  newly wrongly  overlap",
        "large  decline  3         1       100     0    2        1              67%",
    ]
