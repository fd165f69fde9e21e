"""Emission: which results of a window come out, and when (rule W5).

- A `final` comes once, with the first result at or after the close, under every policy; later ones are `correction`s.
- `on_change`: an `early` result for every batch in which the open window got a row; if the batch also closes the
  window, only the final comes out.
- `early`: the same, but not sooner than `early` after the last one by the batch's clock; the first comes at once.
  Only a batch with a row of the key asks, since a clock that nobody looks at moves nothing.
- A window has changed when it got a row since its last result, even if the row left the values as they were.
- `having` is asked of every result. One that fails is not sent; if the window's last result was sent, a `retraction`
  takes it back, with the values that were sent. What is not sent does not count as a revision.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headrace.steps.row import Result

EARLY = "early"
FINAL = "final"
CORRECTION = "correction"
RETRACTION = "retraction"

Passes = Callable[[Result], bool]
"""The `having` condition, over a result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """`on_change`; else at close, with early results every `early` ms (0: none)."""

    on_change: bool = False
    early: int = 0

    def as_json(self) -> dict[str, Any]:
        return {"on_change": self.on_change, "early": self.early}

    @property
    def before_close(self) -> bool:
        return self.on_change or self.early > 0


@dataclass(slots=True)
class Sent:
    """What a window has told so far. Only sessions and `having` ask for `shown`; a kernel keeps it only there."""

    revision: int = 0  # of the next result
    rows: int = 0  # how many rows the last result was made of
    final: bool = False
    early_at: int | None = None  # clock of the last early result
    shown: tuple[Any, ...] | None = None  # values of the last result, while it stands


def kind_due(policy: Policy, sent: Sent, rows: int, closed: bool, touched: bool, clock: int) -> str:
    """The kind of result that is due for a window of so many rows, or "". `touched`: the batch has a row of the key."""
    if closed and not sent.final:
        return FINAL
    if rows == sent.rows:
        return ""
    if closed:
        return CORRECTION
    if not touched:
        return ""
    if policy.on_change:
        return EARLY
    if policy.early and (sent.early_at is None or clock - sent.early_at >= policy.early):
        return EARLY
    return ""


def send(out: list[Result], sent: Sent, result: Result, rows: int, clock: int, passes: Passes | None) -> None:
    """Adds the result to `out`, or what `having` makes of it."""
    sent.rows = rows
    if result.kind == EARLY:
        sent.early_at = clock
    else:
        sent.final = True
    if passes is None or passes(result):
        out.append(result)
        sent.revision += 1
        sent.shown = result.values
    else:
        retract(out, sent, result)


def retract(out: list[Result], sent: Sent, result: Result) -> None:
    """Takes back what was sent for `result`'s window, if it stands. `result.cause` ends in the next revision."""
    if sent.shown is not None:
        out.append(result._replace(kind=RETRACTION, values=sent.shown))
        sent.revision += 1
        sent.shown = None
