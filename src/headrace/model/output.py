"""An output as declared: which rows leave for which topic, in what form, and what a crash does to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from headrace.base.errors import BadStep
from headrace.base.where import Where
from headrace.model.topic import Topic

if TYPE_CHECKING:
    from headrace.model.declared import Node

Guarantee = Literal["exactly-once", "at-least-once", "at-most-once"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """A stream's or a view's end: rows go to a topic under a key. `form`: rows as they are; of a view upserts (the row
    after a change, a tombstone where there is none), or whole changes (rule F2). `guarantee`: what a crash does to
    them."""

    of: Node
    topic: Topic
    key: tuple[tuple[str, Any], ...]  # empty: no key, round robin
    form: str = "rows"  # rows | upserts | changes
    guarantee: Guarantee = "exactly-once"
    where: Where | None = None

    def __post_init__(self) -> None:
        if self.guarantee not in get_args(Guarantee):
            raise BadStep(f"guarantee={self.guarantee!r} is not known", why=f"it is {', '.join(get_args(Guarantee))}",
                          fix="leave it out for exactly-once", where=self.where)  # fmt: skip
