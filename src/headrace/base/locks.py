"""Locks on files: who holds one is looked up without taking it."""

from __future__ import annotations

import fcntl
from pathlib import Path


def holder(file: Path) -> int | None:
    """The process that has locked a file, as it has written there; 0 if it has not yet, None if it is not locked."""
    try:
        lock = file.open()
    except FileNotFoundError:
        return None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return int(lock.read().strip() or 0)
    return None
