"""How much a session yields, as Linux says it."""

from __future__ import annotations

from pathlib import Path


def weight(pid: str | int) -> int | None:
    """None where sessions are not weighed, or where this one is not: that of a boot's own processes nobody began."""
    told = Path(f"/proc/{pid}/autogroup")
    words = told.read_text().split() if told.exists() else []  # "/autogroup-25 nice 0"
    return int(words[-1]) if words else None
