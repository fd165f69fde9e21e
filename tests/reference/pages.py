"""A small site for the tests of the rules: visits of pages, counted in windows."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import headrace as hr
from headrace.testing import Run


@hr.event(topic="visits", key="page", time="at")
class Visit:
    page: str
    at: datetime
    spent: int = 0


@hr.event(topic="buys", key="page", time="at")
class Buy:
    page: str
    at: datetime


def site(
    window: Any, *, disorder: Any = "0 s", lateness: str | None = "0 s", emit: Any = None, **reading: Any
) -> hr.App:
    """Visits per page and window, to "out"; late ones to "late"."""
    app = hr.App("site")
    visits = app.stream(Visit, disorder=disorder, **reading)
    counted = visits.window(window, lateness=lateness, emit=emit).agg(times=hr.count()).named("counted")
    counted.to(app.topic("out"))
    counted.late.to(app.topic("late"))
    return app


def visit(t: Run, at: str, page: str = "p") -> Visit:
    return Visit(page, t.time(at))


def told(t: Run, topic: str = "out") -> list[tuple[Any, ...]]:
    """(from, to, kind, revision, times) per result, times of day as text."""
    return [
        (_clock(r.window_start), _clock(r.window_end), r.kind, r.revision, r.times) for r in t.read(topic)
    ]  # fmt: skip


def _clock(moment: datetime | None) -> str | None:
    return None if moment is None else moment.strftime("%H:%M")
