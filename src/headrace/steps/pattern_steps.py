"""The steps of a pattern as they are declared: names, how each is reached, how often it comes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from headrace.base.errors import BadStep

# How a step is reached. A repetition goes on by `next` (consecutive), `then` or `then_any` (any).
FIRST = "first"
NEXT = "next"
THEN = "then"
THEN_ANY = "then_any"
NEVER = "never"
NEVER_NEXT = "never_next"


@dataclass(frozen=True, slots=True, kw_only=True)
class Criterion:
    """What a row must be: a boolean column of its own (place in the row's args), a condition that also sees the rows
    taken so far (place among the spec's conditions), or both. Neither: every row is."""

    flag: int | None = None
    condition: int | None = None

    def as_json(self) -> dict[str, Any]:
        return {"flag": self.flag, "condition": self.condition}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A named step. `most` None: or more. `inner`: how its repetition goes on. `within`: each of its rows comes less
    than that after the row before it, micros; of a never: how long after that row it watches."""

    name: str
    how: str
    criterion: Criterion = Criterion()
    least: int = 1
    most: int | None = 1
    optional: bool = False
    inner: str = THEN
    greedy: bool = False
    until: Criterion | None = None
    within: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A step of steps. `how`, `inner` and `within` say how its first row is reached, whichever step takes it."""

    how: str
    steps: tuple[Step | Group, ...]
    least: int = 1
    most: int | None = 1
    optional: bool = False
    inner: str = THEN
    within: int | None = None


def leaves(items: tuple[Step | Group, ...]) -> Iterator[Step]:
    for item in every(items):
        if isinstance(item, Step):
            yield item


def every(items: tuple[Step | Group, ...]) -> Iterator[Step | Group]:
    for item in items:
        yield item
        if isinstance(item, Group):
            yield from every(item.steps)


def is_never(item: Step | Group) -> bool:
    return item.how in (NEVER, NEVER_NEXT)


def check(item: Step | Group) -> None:
    name = item.name if isinstance(item, Step) else "a group"
    if item.least < 1 or (item.most is not None and item.most < item.least):
        raise BadStep(
            f"{name} comes {item.least} to {item.most} times", fix="times(a, b) with 1 <= a <= b; or optional"
        )
    repeated = item.most != 1
    if is_never(item) and (isinstance(item, Group) or repeated or item.optional):
        raise BadStep(f"never {name} cannot be repeated, optional or a group", why="it takes no row")
    if isinstance(item, Step) and item.until is not None and item.most is not None:
        raise BadStep(f"until ends what has no other end: {name} is not or_more", fix="use or_more, or leave it out")
