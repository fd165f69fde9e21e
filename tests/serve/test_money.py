"""Money saved: the same sums in whatever order things become known."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from itertools import permutations

from headrace.serve.money import Money


def test_what_was_stopped_and_turns_out_to_be_fraud_is_saved_in_any_order() -> None:
    news: list[Callable[[Money], None]] = [
        lambda money: money.labelled("p1", True, Decimal(100)),
        lambda money: money.stopped("p1"),
        lambda money: money.stopped_by_batch("p2"),
        lambda money: money.labelled("p2", True, Decimal(30)),
        lambda money: money.stopped("p3"),  # a false alarm: nothing was saved
    ]
    for order in permutations(news):
        money = Money(60)
        for tell in order:
            tell(money)
            tell(money)
        assert (money.fraud, money.saved, money.saved_by_batch) == (130, 100, 30)


def test_a_later_label_corrects_the_first() -> None:
    money = Money(60)
    money.stopped("p1")
    money.labelled("p1", True, Decimal(100))
    money.labelled("p1", False, Decimal(100))
    assert (money.fraud, money.saved) == (0, 0)


def test_ids_are_forgotten_and_sums_are_not() -> None:
    now = [0.0]
    money = Money(60, lambda: now[0])
    money.stopped("p1")
    money.labelled("p1", True, Decimal(100))
    now[0] = 61
    money.stopped("p2")
    money.labelled("p1", True, Decimal(100))  # as if it were another
    assert (money.fraud, money.saved) == (200, 100)
