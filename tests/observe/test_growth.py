"""State that grows: said when it did so by much, within a while, and only then."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from headrace.observe.growth import Limits, Size, grown

START = datetime(2026, 11, 15, 10, tzinfo=UTC)
LIMITS = Limits(percent=50, over=timedelta(hours=1), entries=1_000)


def sizes(*keys: int, every: int = 30) -> list[Size]:
    return [Size(at=START + timedelta(minutes=every * n), keys=k, rows=0, bytes=0) for n, k in enumerate(keys)]


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ((), ""),
        ((5_000,), ""),  # it has just begun
        ((0, 5_000), ""),
        ((1_000, 1_200, 1_500), ""),  # by half, and not by more
        ((1_000, 1_200, 1_501), "state grew from 1,000 to 1,501 keys and rows in 1 h"),
        ((0, 100, 999), ""),  # little
        ((0, 100, 1_000), "state grew from 0 to 1,000 keys and rows in 1 h"),
        ((1_000, 2_000, 2_000, 2_000), ""),  # that was before
        ((9_000, 2_000, 2_000), ""),
    ],
)
def test_growth_is_told_against_what_was_there_a_while_ago(keys: tuple[int, ...], said: str) -> None:
    assert grown(sizes(*keys), LIMITS) == said


def test_rows_that_wait_count_as_keys_do() -> None:
    first, _, last = sizes(1_000, 0, 1_000)
    waiting = Size(at=last.at, keys=last.keys, rows=600, bytes=0)
    assert grown([first, waiting], LIMITS) == "state grew from 1,000 to 1,600 keys and rows in 1 h"
