"""Windows: how a keyed stream is cut into finite pieces, and when their results come out (rules W1-W7)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from headrace.base.duration import duration, show
from headrace.base.errors import BadWindow
from headrace.base.where import here
from headrace.model.declaring import declaring

Time = Literal["event", "processing"]
ZERO = timedelta(0)

RESERVED = frozenset({"window_start", "window_end", "kind", "revision"})
"""Columns that every result of a window has (rule F2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tumbling:
    """Windows of one size, side by side: each event is in exactly one. Half-open, [start, end)."""

    size: timedelta
    offset: timedelta = ZERO
    time: Time = "event"

    def __post_init__(self) -> None:
        _positive("size", self.size)
        _known_time(self.time)

    def __str__(self) -> str:
        return f"tumbling {show(self.size)}{_aligned(self.offset)}{_by(self.time)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hopping:
    """Windows of one size that start every `every`; they overlap, so an event is in several."""

    size: timedelta
    every: timedelta
    offset: timedelta = ZERO
    time: Time = "event"

    def __post_init__(self) -> None:
        _positive("size", self.size)
        _positive("every", self.every)
        _known_time(self.time)
        if self.every > self.size:
            raise BadWindow(
                f"windows of {show(self.size)} every {show(self.every)} leave gaps",
                why="events between two windows would be in none and be lost",
                fix=f'every="{show(self.size)}" or less; to look at a part of the time only, filter by time first',
                where=here(),
            )

    def __str__(self) -> str:
        return f"hopping {show(self.size)} every {show(self.every)}{_aligned(self.offset)}{_by(self.time)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sliding:
    """One window per event, looking back: (t - size, t]."""

    size: timedelta

    def __post_init__(self) -> None:
        _positive("size", self.size)

    def __str__(self) -> str:
        return f"sliding {show(self.size)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Events of one key less than `gap` apart belong together: [first, last + gap)."""

    gap: timedelta

    def __post_init__(self) -> None:
        _positive("gap", self.gap)

    def __str__(self) -> str:
        return f"session gap {show(self.gap)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Forever:
    """One window that never ends; needs an emit policy. `ttl`: a key that was silent for so long is forgotten."""

    ttl: timedelta | None = None

    def __post_init__(self) -> None:
        if self.ttl is not None:
            _positive("ttl", self.ttl)

    def __str__(self) -> str:
        return "forever" if self.ttl is None else f"forever ttl {show(self.ttl)}"


Window = Tumbling | Hopping | Sliding | Session | Forever


@dataclass(frozen=True, slots=True, kw_only=True)
class AtClose:
    """One final result when the watermark passes the end, corrections while lateness lasts; `early`: provisional
    results before that, at most one per `early` of the batch's clock."""

    early: timedelta | None = None

    def __post_init__(self) -> None:
        if self.early is not None:
            _positive("early", self.early)

    def __str__(self) -> str:
        return "at close" if self.early is None else f"at close, early every {show(self.early)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OnChange:
    """A result for every batch in which the window changed."""

    def __str__(self) -> str:
        return "on change"


Emit = AtClose | OnChange


@declaring('hr.tumbling("5 min")')
def tumbling(size: str | timedelta, *, offset: str | timedelta = ZERO, time: Time = "event") -> Tumbling:
    """Windows of one size, side by side.

    | event | window of hr.tumbling("5 min") |
    |-------|--------------------------------|
    | 10:01 | 10:00 - 10:05                  |
    | 10:04 | 10:00 - 10:05                  |
    | 10:05 | 10:05 - 10:10                  |

    >>> str(tumbling("5 min"))
    'tumbling 5 min'
    """
    return Tumbling(size=duration(size), offset=duration(offset), time=time)


@declaring('hr.hopping("10 min", every="5 min")', why="every says how often a window starts; size, how long it is")
def hopping(
    size: str | timedelta, *, every: str | timedelta, offset: str | timedelta = ZERO, time: Time = "event"
) -> Hopping:
    """Windows of one size that overlap.

    | event | windows of hr.hopping("10 min", every="5 min") |
    |-------|------------------------------------------------|
    | 10:01 | 09:55 - 10:05, 10:00 - 10:10                   |
    | 10:05 | 10:00 - 10:10, 10:05 - 10:15                   |
    """
    return Hopping(size=duration(size), every=duration(every), offset=duration(offset), time=time)


@declaring('hr.sliding("1 h")')
def sliding(size: str | timedelta) -> Sliding:
    """One result per event over the time before it, the event included.

    | event | window of hr.sliding("5 min") |
    |-------|-------------------------------|
    | 10:01 | after 09:56, up to 10:01      |
    | 10:05 | after 10:00, up to 10:05      |
    """
    return Sliding(size=duration(size))


@declaring('hr.session(gap="30 min")', why="a session has no size: a silence of gap ends it")
def session(*, gap: str | timedelta) -> Session:
    """Bursts of activity: a silence of `gap` ends one.

    | events of one key   | sessions of hr.session(gap="30 min") |
    |---------------------|--------------------------------------|
    | 10:00, 10:10, 10:50 | 10:00 - 10:40, 10:50 - 11:20         |
    | then 10:30 arrives  | 10:00 - 11:20 (both merged)          |
    """
    return Session(gap=duration(gap))


@declaring('hr.forever(ttl="90 d")')
def forever(*, ttl: str | timedelta | None = None) -> Forever:
    """All events of a key, without end; say `emit=hr.on_change()`. `ttl`: a key without events for so long is
    forgotten, and begins anew with its next one."""
    return Forever(ttl=None if ttl is None else duration(ttl))


@declaring('hr.at_close(early="10 s")')
def at_close(*, early: str | timedelta | None = None) -> AtClose:
    """A result when the window closes; with `early` also what is known so far, that often."""
    return AtClose(early=None if early is None else duration(early))


@declaring("hr.on_change()")
def on_change() -> OnChange:
    """A result whenever a batch changed it."""
    return OnChange()


def _positive(what: str, value: timedelta) -> None:
    if value <= ZERO:
        raise BadWindow(
            f"a window's {what} of {show(value)} holds nothing", why=f"{what} must be more than zero", where=here()
        )


def _known_time(value: str) -> None:
    if value not in ("event", "processing"):
        raise BadWindow(f"there is no time {value!r}", why='windows follow "event" or "processing" time', where=here())


def _aligned(offset: timedelta) -> str:
    return f" offset {show(offset)}" if offset else ""


def _by(time: Time) -> str:
    return "" if time == "event" else " by processing time"
