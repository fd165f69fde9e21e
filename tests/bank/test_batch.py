"""The hourly job against the decision on every payment, over the same traffic, with numbers."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

from bank.batch import Batch, compare
from tests.bank.deciding import START, lived

MINUTE = timedelta(minutes=1)


def row(number: int, minutes: int, decision: str = "allow", card: str = "a", amount: str = "10.00") -> dict[str, Any]:
    at = START + minutes * MINUTE
    return {"payment_id": f"p{number}", "card_id": card, "amount": Decimal(amount), "at": at, "decision": decision,
            "pin_ok": True}  # fmt: skip


def test_it_blocks_a_card_when_the_hour_is_over() -> None:
    rows = [row(1, 3, "decline"), row(2, 30, "decline"), row(3, 59), row(4, 60), row(5, 61, card="b"), row(6, 200)]
    job = Batch()
    assert [flag.payment_id for flag in job.take(rows)] == ["p4", "p6"]
    assert job.blocked == {"a": START + 60 * MINUTE}
    assert [flag.payment_id for flag in job.take([row(7, 201, "decline")])] == ["p7"]  # the next run knows it still


def test_both_are_told_in_money() -> None:
    rows = [row(1, 3, "decline"), row(2, 30, amount="5.00"), row(3, 61, "review"), row(4, 62, card="b")]
    told = compare(rows, {"p1", "p2", "p3"})
    assert (told.asked, told.let_through, told.let_through_by_batch) == (Decimal(25), Decimal(5), Decimal(15))
    assert (told.frauds, told.stopped_wrongly, told.stopped_wrongly_by_batch) == (3, 0, 0)


def test_the_decision_while_the_terminal_waits_lets_less_through() -> None:
    told = compare(lived().rows, lived().frauds)
    assert told.frauds > 30
    assert told.let_through < told.asked / 3
    assert told.let_through_by_batch > 2 * told.let_through
    assert f"{told.asked:,}" in str(told)
