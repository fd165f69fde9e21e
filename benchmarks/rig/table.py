"""The one table that a benchmark prints: what was measured, the figure, its ratio, the target, met or not."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass, field

import psutil


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One measurement. `ratio`: to what the target compares it with, else empty. `met` None: there is no target."""

    what: str
    figure: str
    ratio: str = ""
    target: str = ""
    met: bool | None = None
    beside: str = ""


@dataclass(slots=True)
class Table:
    """Lines are printed as they come: a benchmark that is stopped has still told what it knew."""

    title: str
    wide: int = 44
    _begun: bool = field(default=False, init=False)

    def add(self, line: Line) -> None:
        if not self._begun:
            print(f"\n{self.title}\n{machine()}\n")
            print(f"{'':{self.wide}}{'figure':>16}{'ratio':>9}{'target':>16}  met")
            self._begun = True
        met = {None: "", True: "yes", False: "NO"}[line.met]
        print(
            f"{line.what:{self.wide}}{line.figure:>16}{line.ratio:>9}{line.target:>16}  {met:5}{line.beside}".rstrip(),
            flush=True,
        )


def machine() -> str:
    """What the figures were measured on, and how busy it was with other things."""
    memory = psutil.virtual_memory().total / 2**30
    busy = os.getloadavg()[0]
    return f"{os.cpu_count()} cores ({platform.machine()}), {memory:.0f} GB, load {busy:.1f} when it began"
