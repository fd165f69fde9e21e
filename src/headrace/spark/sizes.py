"""How large a flow's state was, minute by minute: kept beside its checkpoint, for whoever asks whether it grows."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
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

    def __post_init__(self) -> None:
        self._known = read_sizes(self.file)[-KEPT:]
        if self._known:  # what is too old goes when a run starts
            self.file.write_text("".join(map(_line, self._known)))

    def take(self, size: Size) -> str:
        """Whether state grows, in words."""
        if not self._known or size.at - self._known[-1].at >= EVERY:
            self._known.append(size)
            with self.file.open("a") as file:
                file.write(_line(size))
        return grown([*self._known, size], self.limits)


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
