"""Static tables: a few rows that stand in the plan itself, given as a list or as a file."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.base.errors import BadApp
from headrace.base.keys import key_text
from headrace.base.where import Where, here
from headrace.expr.types import Columns
from headrace.model.event import EventType, event_type
from headrace.model.naming import few
from headrace.model.row_file import rows_of
from headrace.model.verbs import Verbs

if TYPE_CHECKING:
    from headrace.model.app import App

LIMIT = 10_000
"""Rows. They go to every task with the plan, and their hash is part of it."""


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class Static(Verbs):
    """A declared static table: streams are enriched with it. Its rows are events, in the order of their keys."""

    KIND = "a static table"
    OF_STREAMS = "stream.enrich(table, on=...) gives a stream with its columns, and that has .VERB"

    app: App
    event: EventType
    rows: tuple[Any, ...]
    name: str

    def __repr__(self) -> str:
        return f"<static table of {few(self.columns)} by {', '.join(self.event.key)}: {len(self.rows):,} rows>"

    @property
    def columns(self) -> Columns:
        """Name, type and nullability of each column."""
        return self.event.columns

    @property
    def called(self) -> str:
        """The name of its rows in conditions."""
        return re.sub(r"\W", "_", self.name)


def static(app: App, event: type, rows: Iterable[Any] | str | Path, name: str | None) -> Static:
    """Checks the rows: there are few enough, and one for each key."""
    place, described = here(), event_type(event)
    if not described.key:
        raise BadApp(f"{described.name} has no key", why="a table holds one row per key",
                     fix='@hr.event(key="...")', where=place)  # fmt: skip
    found = rows_of(described, Path(rows), place) if isinstance(rows, str | Path) else _given(described, rows, place)
    some = list(islice(found, LIMIT + 1))
    if len(some) > LIMIT:
        raise BadApp(f"more than {LIMIT:,} rows of {described.name}", why="a static table stands in the plan, whole",
                     fix=f"write them to a compacted topic: app.table({described.name})", where=place)  # fmt: skip
    by_key: dict[str, Any] = {}
    for row, at in some:
        key = key_text([getattr(row, column) for column in described.key])
        if key in by_key:
            raise BadApp(f"two rows of {described.name} have the key {key}", why="a table holds one row per key",
                         fix="take one of them away", where=at)  # fmt: skip
        by_key[key] = row
    ordered = tuple(row for _, row in sorted(by_key.items()))
    return Static(app=app, event=described, rows=ordered, name=name or described.topic or _snake(described.name))


def _given(event: EventType, rows: Iterable[Any], place: Where | None) -> Iterable[tuple[Any, Where | None]]:
    if not isinstance(rows, Iterable):
        raise BadApp(f"{rows!r} is no list of rows", fix=f"give a list of {event.name}, or the name of a file",
                     where=place)  # fmt: skip
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, event.cls):
            raise BadApp(f"row {number} is no {event.name}", why=f"it is {row!r}", fix=f"{event.name}(...)",
                         where=place)  # fmt: skip
        yield row, place


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
