"""What the service remembers: who was asked about, what the flow said, what was told; rebuilt from the log."""

from __future__ import annotations

from asyncio import Future
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import msgspec

from headrace.base.errors import OtherContent

Row = dict[str, Any]
Twin = Literal["agreed", "differed", "disagreed"]
"""What a further answer for an id was beside the first: the same decision; another, from another sight of the log; or
another from the same sight, which must never be."""


@dataclass(slots=True, eq=False)
class Case:
    """One id. Until somebody asks about it here, only what the log holds of it is known."""

    content: bytes = b""
    """A digest of the event; empty while only answers are known."""
    sent: bool = False
    """The event was handed to the log's client here, which gives up only what the broker refuses for good."""
    recorded: bool = False
    """The log has the event."""
    said: tuple[Any, str] | None = None
    """The flow's first decision, and what it had seen of the log."""
    told: bytes = b""
    """The answer that was told, or would be, as JSON."""
    degraded: bool = False
    repeated: bool = False
    """The flow set the event aside: it knows the id from longer ago than we do."""
    first: Future[Row] | None = None
    """The flow's first answer, while somebody waits for it."""
    outcome: Future[None] | None = None
    """Done when `told` is settled, while somebody works on it."""


class Memory:
    """Cases by id, each for a stretch of seconds after it was first heard of."""

    def __init__(self, keep: float) -> None:
        self._keep = keep
        self._cases: dict[str, Case] = {}
        self._order: deque[tuple[float, str]] = deque()

    def __len__(self) -> int:
        return len(self._cases)

    def case(self, id: str, now: float) -> Case:
        """The case of an id, made if there is none."""
        found = self._cases.get(id)
        if found is None:
            found = Case()
            self._remember(id, found, now)
        return found

    def asked(self, id: str, content: bytes) -> Case:
        """The case of an event, not yet kept if it is a new one; another event of the same id is refused."""
        case = self._cases.get(id) or Case()
        if case.content and case.content != content:
            raise came_before()
        return case

    def keep(self, id: str, case: Case, content: bytes, now: float) -> None:
        """The event is on its way to the log, or there: from now on its id is taken."""
        if id not in self._cases:
            self._remember(id, case, now)
        case.content = content

    def written(self, id: str, content: bytes, now: float) -> None:
        """The log holds an event. Of two with one id the first stands."""
        case = self.case(id, now)
        case.content = case.content or content
        case.recorded = True

    def repeated(self, id: str, now: float) -> None:
        """The flow will not answer about it."""
        self.case(id, now).repeated = True

    def answered(self, id: str, row: Row, tell: tuple[str, ...], now: float) -> Twin | None:
        """The flow has said something; None if it is the first that it says of this id."""
        case, seen = self.case(id, now), seen_of(row)
        if case.said is not None:
            decision, before = case.said
            if row.get("decision") == decision:
                return "agreed"
            return "disagreed" if seen == before else "differed"
        case.said = (row.get("decision"), seen)
        case.recorded = True  # it cannot be answered unless it was read
        if case.first is not None and not case.first.done():
            case.first.set_result(row)
        if not case.told:
            case.told = msgspec.json.encode(told_of(row, tell))
        return None

    def _remember(self, id: str, case: Case, now: float) -> None:
        self._forget(now)
        self._cases[id] = case
        self._order.append((now, id))

    def _forget(self, now: float) -> None:
        while self._order and now - self._order[0][0] > self._keep:
            del self._cases[self._order.popleft()[1]]


def came_before() -> OtherContent:
    return OtherContent(
        "this id came before, with other values",
        why="an id names one event; the first stands, and nothing was changed",
        fix="use a new id for a new event, or send the same values again",
    )


def seen_of(row: Mapping[str, Any]) -> str:
    """What a decision had seen of the log: the columns that the features and the policy say it in."""
    return " | ".join(str(row[name]) for name in _seen_columns(tuple(row)))


@lru_cache(maxsize=16)
def _seen_columns(names: tuple[str, ...]) -> tuple[str, ...]:
    """Of rows with these columns, which are the same from row to row."""
    return tuple(name for name in names if name.startswith("seen_") or name.endswith("_seen"))


def told_of(row: Mapping[str, Any], tell: tuple[str, ...]) -> Row:
    return {name: row[name] for name in tell if name in row}
