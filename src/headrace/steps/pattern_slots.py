"""Slots: what conditions and outputs of a pattern ask of the rows taken so far.

| slot                          | step took 10, null, 30 | step took nothing |
|-------------------------------|------------------------|-------------------|
| `first`, `last`               | 10, 30                 | null              |
| `list`                        | [10, 30]               | []                |
| `count` of rows, of a column  | 3, 2                   | 0                 |
| `sum`, `avg`, `min`, `max`    | 40, 20.0, 10, 30       | null              |

A condition is an expression over the columns of the row in its turn, then its slots; that row is not among the rows
taken. The columns of matches and timeouts are slots.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.steps import aggregate
from headrace.steps.row import Row

FIRST = "first"
LAST = "last"
LIST = "list"
NUMBERS = ("sum", "avg", "min", "max")

Args = tuple[Any, ...]

Named = dict[str, list[Args]]
"""The rows taken so far, by step; a step that has taken none has an empty list."""

Condition = Callable[[Args, Named], bool | None]
"""Over the args of the row in its turn and the rows taken before it. Null is not true."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """`fn` over a column of the rows that `step` took, in the order in which it took them. `step` "": of all rows, for
    outputs only. `column`: its place in the args; None: rows are counted. `of`: what the column is, `precision`: of a
    decimal result, both as in aggregate.Spec."""

    fn: str
    step: str = ""
    column: int | None = None
    of: str = ""
    precision: int = 0

    def as_json(self) -> dict[str, Any]:
        return {"fn": self.fn, "step": self.step, "column": self.column, "precision": self.precision}


def condition(slots: tuple[Slot, ...], test: Callable[[Args], bool | None]) -> Condition:
    """`test` gets the args of the row in its turn, then the slots: all plain values (plain.py)."""
    return lambda args, named: test((*args, *(_value(slot, named[slot.step]) for slot in slots)))


def output(slots: tuple[Slot, ...], rows: Sequence[tuple[str, Row]]) -> Args:
    """The columns of what was found (`Found.rows`): plain values."""
    return tuple(_value(slot, [row.args for name, row in rows if slot.step in ("", name)]) for slot in slots)


def numbers(slots: Sequence[Slot]) -> tuple[int, ...]:
    """The float columns that must be numbers (rule B3)."""
    return tuple({slot.column: None for slot in slots if slot.of == "float" and slot.fn in NUMBERS})  # type: ignore[misc]


def _value(slot: Slot, rows: list[Args]) -> Any:
    if slot.column is None:
        return len(rows)
    values = [args[slot.column] for args in rows]
    if slot.fn in (FIRST, LAST):
        return values[0 if slot.fn == FIRST else -1] if values else None
    if slot.fn == LIST:
        return [value for value in values if value is not None]
    algebra = aggregate.algebra(aggregate.Spec(name="", kind=slot.fn, of=slot.of, precision=slot.precision))
    state = algebra.empty()
    for value in values:
        state = algebra.add(state, value, _ANYWHERE)
    return algebra.value(state)


_ANYWHERE = (0, 0, 0, 0, "")  # none of these algebras asks for a row's place
