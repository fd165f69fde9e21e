"""The declared step that decides: rows with what a published policy says of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.base.errors import BadStep
from headrace.base.where import Where
from headrace.expr.types import FLOAT, TEXT, Column, Columns, list_of
from headrace.model.node import OneInput
from headrace.model.rule import ACTIONS, Action
from headrace.model.topic import Topic

if TYPE_CHECKING:
    from headrace.model.declared import Node

SAID = (
    Column("decision", TEXT),
    Column("reasons", list_of(TEXT)),
    Column("score", FLOAT, True),
    Column("rules_version", TEXT),
    Column("model_version", TEXT),
    Column("policy_seen", TEXT),
    Column("shadow", TEXT, True),
)
"""What is said of a row."""
LARGEST = 16_000_000
"""Bytes of a policy: its model is a part of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided(OneInput):
    """A stream's rows, each with a decision of the policy of that name; `default` until one is published."""

    of: Node
    policy: str
    default: Action
    name: str = ""
    where: Where | None = None

    @property
    def columns(self) -> Columns:
        return (*self.of.columns, *SAID)


def decided(of: Any, policy: str, default: Any, place: Where | None) -> Decided:
    """What `stream.decide(...)` gives."""
    if default not in ACTIONS:
        raise BadStep(f"default={default!r} is no decision", why=f"it is one of {', '.join(ACTIONS)}",
                      fix='default="review"', where=place)  # fmt: skip
    if taken := [column.name for column in of.columns if column.name in {said.name for said in SAID}]:
        raise BadStep(f"the column {taken[0]!r} is taken", why="a decision says there what it says",
                      fix=f'rename it first: .select("..., {taken[0]} as ...")', where=place)  # fmt: skip
    return Decided(of=of, policy=policy, default=default, where=place)


def policy_topic(name: str) -> Topic:
    """Where the policies of that name are published. All of them are kept: a decision says which one it met."""
    return Topic(name=f"{name}.policy", partitions=1, largest=LARGEST)
