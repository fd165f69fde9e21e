"""Time: the engine's clock as a thing to pass around, and reading times as people type them."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from typing import Protocol

from headrace.base.duration import duration
from headrace.base.errors import BadTime

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


class Clock(Protocol):
    """Anything that knows what time it is."""

    def now(self) -> datetime: ...


class SystemClock:
    """The machine's clock, in UTC."""

    def now(self) -> datetime:
        return datetime.now(UTC)


class HandClock:
    """A clock that moves only when told: time in the test's hand."""

    def __init__(self, start: datetime) -> None:
        self._now = utc(start)

    def now(self) -> datetime:
        return self._now

    def advance(self, by: str | timedelta) -> datetime:
        self._now += duration(by)
        return self._now


def utc(moment: datetime) -> datetime:
    """The same instant in UTC; a naive time is refused, because nobody can know which instant it means."""
    if moment.tzinfo is None or moment.utcoffset() is None:
        raise BadTime(
            f"{moment.isoformat()} has no time zone",
            why="Headrace stores instants; a naive time could mean any of them",
            fix="add tzinfo, for example datetime(..., tzinfo=UTC)",
        )
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise BadTime(
            f"{moment.isoformat()} is no instant in UTC",
            why="there it falls outside the years 1 to 9999",
            fix="send the time that is meant",
        ) from None


def micros(moment: datetime) -> int:
    """Microseconds since the epoch: how event times are kept inside (rule T1)."""
    return (utc(moment) - EPOCH) // MICROSECOND


def from_micros(value: int) -> datetime:
    return EPOCH + timedelta(microseconds=value)


def rfc3339(moment: datetime) -> str:
    """Six digits and Z (rule F1), so that text order is time order; the year has four, which strftime forgets.

    >>> rfc3339(datetime(2026, 11, 3, 15, tzinfo=UTC))
    '2026-11-03T15:00:00.000000Z'
    """
    return utc(moment).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def read_time(text: str, *, now: datetime) -> datetime:
    """A moment as typed at a shell: "2026-11-03T15:00Z", "14:03" (today, local), "2026-11-03", "-2 h" (ago), "now"."""
    typed = text.strip()
    local = now.astimezone().tzinfo
    if typed == "now":
        return now
    if typed.startswith("-") and not typed[1:].strip().isdigit():
        return now + duration(typed)
    for read in (_time_of_day, _date_or_instant):
        if (found := read(typed, now)) is not None:
            return utc(found if found.tzinfo else found.replace(tzinfo=local))
    raise BadTime(
        f"{text!r} is not a time",
        why="it is neither a time of day, a date, an RFC 3339 instant nor a duration ago",
        fix='write "14:03", "2026-11-03T15:00Z" or "-2 h"',
    )


def _time_of_day(text: str, now: datetime) -> datetime | None:
    try:
        return datetime.combine(now.astimezone().date(), time.fromisoformat(text))
    except ValueError:
        return None


def _date_or_instant(text: str, _now: datetime) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None
