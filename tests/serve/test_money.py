"""Money saved: the same sums in whatever order things become known."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import permutations

from headrace.serve.money import Money

START = datetime(2026, 11, 3, 15, tzinfo=UTC)
LATER = START + timedelta(seconds=1)


def test_what_was_stopped_and_turns_out_to_be_fraud_is_saved_in_any_order() -> None:
    news: list[Callable[[Money], None]] = [
        lambda money: money.labelled("p1", True, Decimal(100), START),
        lambda money: money.stopped("p1"),
        lambda money: money.stopped_by_batch("p2"),
        lambda money: money.labelled("p2", True, Decimal(30), START),
        lambda money: money.stopped("p3"),  # a false alarm: nothing was saved
    ]
    for order in permutations(news):
        money = Money(60)
        for tell in order:
            tell(money)
            tell(money)
        assert (money.fraud, money.saved, money.saved_by_batch) == (130, 100, 30)


def test_of_two_labels_the_later_by_time_counts_in_any_order() -> None:
    news: list[Callable[[Money], None]] = [
        lambda money: money.stopped("p1"),
        lambda money: money.labelled("p1", True, Decimal(100), START),
        lambda money: money.labelled("p1", False, Decimal(100), LATER),
        lambda money: money.labelled("p2", False, Decimal(30), START),  # of which nothing else is known
        lambda money: money.labelled("p2", True, Decimal(30), LATER),
        lambda money: money.labelled("p3", True, Decimal(7), START),
        lambda money: money.labelled("p3", False, Decimal(7), LATER),
    ]
    for order in permutations(news):
        money = Money(60)
        for tell in order:
            tell(money)
        assert (money.fraud, money.saved) == (30, 0)


def test_so_many_genuine_labels_are_remembered() -> None:
    money = Money(60)
    for number in range(100_001):
        money.labelled(f"p{number}", False, Decimal(1), LATER)
    money.labelled("p1", True, Decimal(1), START)
    assert money.fraud == 0
    money.labelled("p0", True, Decimal(1), START)  # the oldest made room
    assert money.fraud == 1


def test_ids_are_forgotten_and_sums_are_not() -> None:
    now = [0.0]
    money = Money(60, lambda: now[0])
    money.stopped("p1")
    money.labelled("p1", True, Decimal(100), START)
    now[0] = 61
    money.stopped("p2")
    money.labelled("p1", True, Decimal(100), START)  # as if it were another
    assert (money.fraud, money.saved) == (200, 100)
