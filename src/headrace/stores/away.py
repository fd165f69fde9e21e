"""A server that is away for a moment: tried again, soon and then less often, until patience ends."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 15.0
"""Seconds. PostgreSQL is back from a crash in less; who has waited that long is told, and starts the batch again."""
_FIRST, _LONGEST = 0.05, 1.0


def patiently(attempt: Callable[[], None], away: Callable[[Exception], bool]) -> None:
    """Tries until it works. An error that does not say `away` goes through at once, the last one when patience ends."""
    end, pause = time.monotonic() + PATIENCE, _FIRST
    while True:
        try:
            return attempt()
        except Exception as broken:
            if not away(broken) or time.monotonic() + pause > end:
                raise
        time.sleep(pause)
        pause = min(pause * 2, _LONGEST)
