"""Functions and events that Spark's Python workers import: they cannot travel from inside a test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import headrace as hr


@hr.event(key="page", time="at")
class Everything:
    """A value of every type, with and without null."""

    page: str
    at: datetime
    number: int
    ratio: float
    ok: bool
    price: hr.Money
    raw: bytes
    times: list[datetime]
    words: list[str]
    prices: list[hr.Money]
    note: str | None = None
    later: datetime | None = None
    money: hr.Money | None = None


@hr.event(key="word")
class Word:
    word: str
    place: int


@hr.event(key="page")
class Told:
    page: str
    how: str
    times: int


def same(row: Any) -> Everything:
    """Every value as it came: a type that does not cross both ways unharmed is seen."""
    assert row.at.tzinfo is not None
    assert type(row.raw) is bytes
    return Everything(*row)


def wordy(row: Any) -> bool:
    if row.page == "bad":
        raise ValueError("not this page")
    return len(row.words) > 1


def later(row: Any) -> Everything:
    if row.page == "bad":
        raise ValueError("not this page")
    changed = {name: getattr(row, name) for name in row._fields}
    return Everything(**changed | {"at": row.at + timedelta(hours=1), "note": None, "words": [*row.words, "ß"]})


def split(row: Any) -> Iterator[Word]:
    """Fails in the middle of its rows, too."""
    for place, word in enumerate(row.words):
        if word == "stop":
            raise ValueError("no more")
        yield Word(word, place)


def wrong(row: Any) -> Any:
    return Word("w", 0) if row.page == "bad" else same(row)


def shouted(row: Any) -> Word:
    return Word(row.word.upper(), row.place)


def told(row: Any) -> Told:
    """Of a window's result."""
    if row.page == "bad":
        raise ValueError(f"{row.kind} of a bad page")
    return Told(row.page, row.kind, row.times)


class Shaky:
    """Fails the first two times it is asked about a page. A worker process keeps its own count."""

    __name__ = "shaky"

    def __init__(self) -> None:
        self._asked: dict[str, int] = {}

    def __call__(self, row: Any) -> Everything:
        self._asked[row.page] = self._asked.get(row.page, 0) + 1
        if self._asked[row.page] < 3:
            raise OSError("try again")
        return same(row)


def fussy(row: Any) -> Everything:
    if row.page == "bad":
        raise ValueError("not this page")
    return same(row)


def dies_once(row: Any) -> Told:
    """Ends its worker process the first time; what it leaves behind at `page` says that it did."""
    try:
        with Path(row.page).open("x"):
            os._exit(1)
    except FileExistsError:
        return Told(row.page, "survived", 1)
