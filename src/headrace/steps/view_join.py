"""A view of two tables: left rows joined to the right row whose primary key they point to (rule J5).

Changes walk through three steps, each by another key:
1. `links`, by the left row's primary key, without state: a change of the left row tells the foreign key it pointed to,
   and the one it points to now. What needs no partner (a deleted row, a null foreign key) is answered at once.
2. `step` and `learn`, by foreign key: the right row, and all left rows that point to it. Each change gives answers.
3. settle.py, by output key (the left row's primary key): takes the answer of the greatest cause.

Steps 1 and 3 see a key's changes of a batch at most once; step 2 may answer twice for an output key when both its rows
changed in the batch, or for a row that has moved away: the cause, (left version, right version), tells which answer
stands. Giving the right row's change before the links saves answers, and changes no result.
A join on the primary keys of both tables is the same with one link. Self joins are two inputs.

State of step 2 is one small entry for each left row, addressed by its key, and the right row: a kernel keeps the links
in chunks, touches one for a link, and walks over all only when the right row changes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from headrace.steps.change import NO_VERSION, Change
from headrace.steps.row import USED
from headrace.steps.version import Values

Key = str
"""A key's text (rule F1)."""


class Link(NamedTuple):
    """A left row as the foreign key sees it; `values` None: it points here no more."""

    key: Key  # the left row's primary key
    version: int
    values: Values | None


class Answer(NamedTuple):
    """What the view holds for an output key, None: nothing."""

    key: Key
    cause: tuple[int, int]  # versions of the left and of the right row
    values: Values | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """`outer`: a left row without partner stays, with nulls in the `width` columns of the right."""

    outer: bool
    width: int

    def as_json(self) -> dict[str, Any]:
        return {"step": "view_join", "outer": self.outer, "width": self.width}

    def row(self, left: Values, right: Values | None) -> Values | None:
        if right is not None:
            return left + right
        return left + (None,) * self.width if self.outer else None


@dataclass(slots=True)
class State:
    """One foreign key: the right row that has it as primary key, and the left rows that point to it, by their key."""

    right: Values | None = None
    version: int = NO_VERSION  # of the right row, or of its deletion
    links: dict[Key, tuple[int, Values]] = field(default_factory=dict)  # version and values

    @property
    def empty(self) -> bool:
        return self.right is None and not self.links

    @property
    def held(self) -> int:
        return 0  # what was learned is remembered, and used when it came


def links(
    spec: Spec, key: Key, change: Change, old: Key | None, new: Key | None
) -> tuple[list[tuple[Key, Link]], list[Answer]]:
    """From a change of the left row `key`, whose foreign key was `old` and is `new` (None: null, or no row): what to
    tell which foreign key, and what to answer at once."""
    told: list[tuple[Key, Link]] = []
    if old is not None and old != new:
        told.append((old, Link(key, change.version, None)))
    if change.after is not None and new is not None:
        told.append((new, Link(key, change.version, change.after)))
        return told, []
    values = None if change.after is None else spec.row(change.after, None)
    return told, [Answer(key, (change.version, NO_VERSION), values)]


def step(spec: Spec, state: State, link: Link) -> tuple[str, list[Answer]]:
    """A left row points here, has changed, or has gone; of one that has gone, others answer."""
    if link.values is None:
        state.links.pop(link.key, None)
        return USED, []
    state.links[link.key] = (link.version, link.values)
    return USED, [_answer(spec, state, link.key)]


def learn(spec: Spec, state: State, change: Change) -> tuple[str, list[Answer]]:
    """The right row has changed: every left row that points to it is answered anew, in order of their keys. Its version
    grows here even if its table has forgotten a deletion: an answer from before the change must not stand against one
    after it."""
    state.right = change.after
    state.version = max(change.version, state.version + 1)
    return USED, [_answer(spec, state, key) for key in sorted(state.links)]


def on_time(spec: Spec, state: State, watermark: int | None) -> tuple[list[Answer], int]:
    """Time says nothing to a view."""
    return [], 0


def due(spec: Spec, state: State) -> int | None:
    return None


def _answer(spec: Spec, state: State, key: Key) -> Answer:
    version, values = state.links[key]
    return Answer(key, (version, state.version), spec.row(values, state.right))
