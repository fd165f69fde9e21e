"""Signs, for tests of patterns: rows that say what they are, of two streams."""

from __future__ import annotations

from datetime import datetime, timedelta

import headrace as hr
from headrace.testing import Run


@hr.event(topic="signs", key="key", time="at")
class Sign:
    key: str
    what: str
    value: int
    at: datetime
    note: str | None = None


@hr.event(topic="others", key="key", time="at")
class Other:
    key: str
    what: str
    price: hr.Money
    at: datetime


def app(disorder: str = "0 s") -> tuple[hr.App, hr.Stream, hr.Stream]:
    found = hr.App("signs")
    return found, found.stream(Sign, disorder=disorder), found.stream(Other, disorder=disorder)


def sign(t: Run, second: float, word: str, key: str = "k") -> Sign:
    """`a3` at second 5: of the sort a, with the value 3."""
    return Sign(key, word[0], int(word[1:] or 0), t.time("10:00") + timedelta(seconds=second))


def other(t: Run, second: float, what: str, price: str = "1.00", key: str = "k") -> Other:
    return Other(key, what, hr.money(price), t.time("10:00") + timedelta(seconds=second))


def send(t: Run, words: str) -> None:
    """A sign a second; a full stop is a second of silence."""
    for second, word in enumerate(words.split()):
        if word != ".":
            t.send(sign(t, second, word))
