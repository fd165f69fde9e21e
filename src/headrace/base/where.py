"""A place in the user's own code: the first frame outside Headrace, so that errors point at their line."""

from __future__ import annotations

import linecache
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

_OURS = str(Path(__file__).resolve().parents[1]) + os.sep


@dataclass(frozen=True, slots=True)
class Where:
    """File and line of a declaration."""

    file: str
    line: int

    @property
    def source(self) -> str:
        """The line itself, or "" where the file cannot be read (a notebook, a REPL)."""
        return linecache.getline(self.file, self.line).strip()

    def __str__(self) -> str:
        near = os.path.relpath(self.file)
        return f"{self.file if near.startswith('..') else near}:{self.line}"


def here() -> Where | None:
    """The innermost frame that is not Headrace's own and not generated (dataclass __init__, decorators)."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(_OURS) and not file.startswith("<"):
            return Where(file, frame.f_lineno)
        frame = frame.f_back
    return None
