"""Whether a flow's state grows: what it keeps now against what it kept a while ago."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from headrace.base.duration import show


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """A flow's state at a moment: keys, and rows that wait, over all steps."""

    at: datetime
    keys: int
    rows: int
    bytes: int

    @property
    def entries(self) -> int:
        return self.keys + self.rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """State that grew by more than `percent` within `over`, to at least `entries`, is worth a word."""

    percent: int = 100
    over: timedelta = timedelta(hours=1)
    entries: int = 100_000


def grown(sizes: Sequence[Size], limits: Limits) -> str:
    """In words, or "". Until sizes reach so far back nothing is said: state that begins always grows."""
    if not sizes:
        return ""
    now = sizes[-1]
    before = next((size for size in reversed(sizes) if size.at <= now.at - limits.over), None)
    if before is None or now.entries < limits.entries:
        return ""
    if now.entries * 100 <= before.entries * (100 + limits.percent):
        return ""
    return f"state grew from {before.entries:,} to {now.entries:,} keys and rows in {show(now.at - before.at)}"
