"""A part of the stack as shown: embedded or your own, where it is, whether it answers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Literal

State = Literal["running", "stopped", "dead", "silent", "refused"]
"""`dead`: it ended by itself or was killed; `silent`: it should answer and does not; `refused`: it answers, but does
not let us in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartView:
    """One server. Addresses here never hold a password."""

    name: str
    kind: Literal["embedded", "own"]
    state: State
    address: str
    pid: int | None = None
    memory_mb: int | None = None
    uptime: timedelta | None = None
    log: Path | None = None
    trouble: str = ""
    """Why it is silent, or refuses us."""
