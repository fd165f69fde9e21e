"""Times: typed at a shell, stored as UTC microseconds, written as RFC 3339."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.base.clock import HandClock, from_micros, micros, read_time, rfc3339, utc
from headrace.base.errors import BadTime
from tests.properties import examples

NOW = datetime(2026, 11, 15, 12, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("2026-11-03T15:00Z", datetime(2026, 11, 3, 15, tzinfo=UTC)),
        ("2026-11-03T15:00:00+02:00", datetime(2026, 11, 3, 13, tzinfo=UTC)),
        ("-2 h", NOW - timedelta(hours=2)),
        ("now", NOW),
    ],
)
def test_reads_times_as_typed(typed: str, expected: datetime) -> None:
    assert read_time(typed, now=NOW) == expected


def test_a_time_of_day_is_today_in_the_local_zone() -> None:
    found = read_time("14:03", now=NOW).astimezone()
    assert (found.date(), found.hour, found.minute) == (NOW.astimezone().date(), 14, 3)


def test_refuses_what_is_no_time() -> None:
    with pytest.raises(BadTime, match="is not a time"):
        read_time("teatime", now=NOW)


def test_naive_times_are_refused() -> None:
    with pytest.raises(BadTime, match="no time zone"):
        utc(datetime(2026, 1, 1))


@examples(100)
@given(st.datetimes(min_value=datetime(1900, 1, 1), max_value=datetime(2200, 1, 1), timezones=st.just(UTC)))
def test_t1_microseconds_read_back(moment: datetime) -> None:
    assert from_micros(micros(moment)) == moment


def test_f1_times_have_six_digits_and_z() -> None:
    local = datetime(2026, 11, 3, 17, 0, 0, 5, tzinfo=timezone(timedelta(hours=2)))
    assert rfc3339(local) == "2026-11-03T15:00:00.000005Z"


def test_f1_text_order_is_time_order_also_before_the_year_1000() -> None:
    assert rfc3339(datetime(7, 1, 2, tzinfo=UTC)) == "0007-01-02T00:00:00.000000Z"


def test_a_hand_clock_moves_only_when_told() -> None:
    clock = HandClock(NOW)
    assert clock.now() == NOW
    clock.advance("1 min")
    assert clock.now() == NOW + timedelta(minutes=1)


@pytest.mark.parametrize("far", [datetime(1, 1, 1), datetime(9999, 12, 31, 23)])
def test_a_time_that_is_none_in_utc_is_refused(far: datetime) -> None:
    ahead = timedelta(hours=2 if far.year == 1 else -2)
    with pytest.raises(BadTime, match="no instant in UTC"):
        utc(far.replace(tzinfo=timezone(ahead)))
