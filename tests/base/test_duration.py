"""Durations: what people write, and what is refused."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.base.duration import duration, millis, show
from headrace.base.errors import BadDuration
from tests.properties import examples


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5 min", timedelta(minutes=5)),
        ("5min", timedelta(minutes=5)),
        ("1 h 30 min", timedelta(minutes=90)),
        ("250 ms", timedelta(milliseconds=250)),
        ("1.5 s", timedelta(milliseconds=1500)),
        ("2 days", timedelta(days=2)),
        ("0 s", timedelta(0)),
        ("-10 min", timedelta(minutes=-10)),
        (timedelta(seconds=3), timedelta(seconds=3)),
    ],
)
def test_reads_what_people_write(text: str | timedelta, expected: timedelta) -> None:
    assert duration(text) == expected


@pytest.mark.parametrize("text", ["", "5", "min", "5 lightyears", "five min", "0.1 ms", "5 min,", 300])
def test_refuses_the_rest_with_a_fix(text: str) -> None:
    with pytest.raises(BadDuration):
        duration(text)


def test_t1_durations_are_whole_milliseconds() -> None:
    with pytest.raises(BadDuration, match="finer than a millisecond"):
        duration(timedelta(microseconds=1))


@examples(100)
@given(st.integers(min_value=-(10**12), max_value=10**12))
def test_shown_durations_read_back(ms: int) -> None:
    assert millis(show(timedelta(milliseconds=ms))) == ms
