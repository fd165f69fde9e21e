"""How large a flow's state was, minute by minute: kept beside its checkpoint, for whoever asks whether it grows."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from headrace.base.clock import EPOCH, micros
from headrace.observe.growth import Limits, Size, grown

EVERY = timedelta(minutes=1)
KEPT = 25 * 60
"""A day and an hour, in minutes."""


@dataclass(slots=True)
class Sizes:
    """Takes a size after each batch, keeps one a minute."""

    file: Path
    limits: Limits
    _known: list[Size] = field(default_factory=list)
    _last: Size | None = None  # taken, and not kept yet

    def __post_init__(self) -> None:
        self._known = read_sizes(self.file)
        self._forget()

    def take(self, size: Size) -> str:
        """Whether state grows, in words."""
        self._last = size
        self.keep(size.at)
        return grown([*self._known, size], self.limits)

    def keep(self, now: datetime) -> None:
        """What was taken last, when its minute has come: nothing may follow it for long."""
        if self._last is None or (self._known and now - self._known[-1].at < EVERY):
            return
        self._known.append(self._last)
        with self.file.open("a") as file:
            file.write(_line(self._last))
        self._last = None
        if len(self._known) > 2 * KEPT:
            self._forget()

    def _forget(self) -> None:
        """What is too old."""
        self._known = self._known[-KEPT:]
        if self._known:
            self.file.write_text("".join(map(_line, self._known)))


def read_sizes(file: Path) -> list[Size]:
    """Oldest first; a line that a kill cut off is left out."""
    found = []
    for line in file.read_text(errors="replace").splitlines() if file.exists() else ():
        told = line.split(",")
        if len(told) == 4 and all(word.isdigit() for word in told):
            ms, keys, rows, size = map(int, told)
            found.append(Size(at=EPOCH + timedelta(milliseconds=ms), keys=keys, rows=rows, bytes=size))
    return found


def _line(size: Size) -> str:
    return f"{micros(size.at) // 1000},{size.keys},{size.rows},{size.bytes}\n"
