"""A declared pattern: its steps, what each wants of a row, and the layout that rows of all its streams share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from headrace.base.where import Where
from headrace.expr.types import BOOL, Column, Columns
from headrace.model.node import Choosing

if TYPE_CHECKING:
    from headrace.model.declared import Node

LIMIT = 10_000
"""Partial matches that a key may have open; what would open more is refused, and told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """What a row must be: `flag` is a column of the layout, `condition` a place in the pattern's conditions; neither:
    every row is. `text`: as it was said."""

    flag: int | None = None
    condition: int | None = None
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A named step, whose rows are those of the n-th input. `most` None: or more."""

    name: str
    how: str  # first | next | then | then_any | never | never_next
    input: int
    fit: Fit
    least: int = 1
    most: int | None = 1
    optional: bool = False
    inner: str = "then"  # how its repetition goes on: next | then | then_any
    greedy: bool = False
    until: Fit | None = None
    within: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A step of steps."""

    how: str
    steps: tuple[Step | Group, ...]
    least: int = 1
    most: int | None = 1
    optional: bool = False
    inner: str = "then"
    within: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """`test` is over the layout and, after it, the slots `asks` (expr/earlier.py)."""

    asks: tuple[Any, ...]
    test: Any

    @property
    def slots(self) -> Columns:
        return tuple(Column(ask.name, ask.type, True) for ask in self.asks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """A condition over a row alone, known before the row meets any other (rule P5). False in rows of other inputs;
    `test` None: every row of the input is."""

    name: str
    input: int
    test: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern(Choosing):
    """Rows of a key that follow each other as the steps say (rules P1 to P5). `names`: of the inputs. `keys`: as the
    rows of each input have it. `kept`: `within` only bounds the state. `needed`: (input, column) that somebody asks
    for. `values`: what comes out, over the slots `asks`."""

    of: tuple[Node, ...]
    names: tuple[str, ...]
    keys: tuple[tuple[tuple[str, Any], ...], ...]
    steps: tuple[Step | Group, ...]
    within: timedelta
    kept: bool
    after: str  # none | next | past last | to first | to last
    to: str
    flags: tuple[Flag, ...]
    conditions: tuple[Condition, ...]
    needed: tuple[tuple[int, Column], ...]
    asks: tuple[Any, ...]
    values: tuple[tuple[str, Any], ...]
    limit: int = LIMIT
    name: str = ""
    where: Where | None = None

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.of

    @property
    def timeouts(self) -> Columns:
        """The same columns; what is told of a step that was not reached is null."""
        certain = {ask.name for ask in self.asks if ask.fn in ("count", "list") or not ask.step}
        return tuple(
            replace(column, nullable=column.nullable or any(ref.name not in certain for ref in value.refs()))
            for column, (_, value) in zip(self.columns, self.values, strict=True)
        )

    @property
    def key(self) -> tuple[str, ...]:
        """The key's columns, if all of them come out under their own names."""
        out = {name for name, value in self.values if getattr(value, "name", "") == f"key({name})"}
        names = tuple(name for name, _ in self.keys[0])
        return names if out.issuperset(names) else ()

    @property
    def layout(self) -> Columns:
        """A row as the step sees it, of whichever input: flags, the key, then columns that are null in rows of other
        inputs."""
        return (
            *(Column(flag.name, BOOL) for flag in self.flags),
            *(Column(f"key({name})", value.type) for name, value in self.keys[0]),
            *(Column(f"{self.names[input]}.{c.name}", c.type, True) for input, c in self.needed),
        )

    def entering(self, number: int) -> tuple[Any, ...]:
        """The layout's columns as expressions over a row of the n-th input."""
        from headrace.expr.check import literal
        from headrace.expr.nodes import Call, Cast, Ref

        def flagged(flag: Flag) -> Any:
            if flag.input != number or flag.test is None:
                return literal(flag.input == number)
            return Call(op="coalesce", args=(flag.test, literal(False))) if flag.test.nullable else flag.test

        def column(input: int, c: Column) -> Any:
            if input != number:
                return Cast(arg=literal(None), type=c.type, implicit=True)
            return Ref(name=c.name, type=c.type, nullable=c.nullable)

        return (
            *map(flagged, self.flags),
            *(value for _, value in self.keys[number]),
            *(column(input, c) for input, c in self.needed),
        )

    @property
    def given(self) -> Columns:
        """What is told of a match or timeout before `values` are made of it: the slots."""
        return tuple(Column(ask.name, ask.type, True) for ask in self.asks)
