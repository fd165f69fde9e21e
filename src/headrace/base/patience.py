"""How much a process of ours yields to all others: Linux can weigh sessions against each other.

The weight of a session can be lowered and raised again by its owner; the niceness of a process can only be lowered,
without a privilege. And where sessions are weighed, niceness counts only inside each.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from time import sleep

STANDING_BY = 15
"""Of 19: next to nothing while others want the processor, all of it while they do not."""
CATCHING_UP = 8
"""A sixth of what others get, and what they leave: who answers meanwhile hardly notices."""
_TRIES, _AGAIN = 20, 0.06


def patience() -> int:
    """How much we yield: as a process, or as a session that is ours."""
    found = max(0, os.getpriority(os.PRIO_PROCESS, 0))
    if os.getsid(0) == os.getpid():
        with suppress(OSError, ValueError, IndexError):  # "/autogroup-25 nice 0"; nothing where it is not weighed
            found = max(found, int(_weight(os.getpid()).read_text().split()[-1]))
    return found


def yield_by(pid: int, much: int) -> None:
    """Lets the session that a process leads yield so much, as `nice` counts. Nothing where sessions are not weighed, or
    where it leads none: that of a terminal is not ours."""
    with suppress(OSError):
        if os.getsid(pid) != pid:
            return
        for _ in range(_TRIES):
            try:
                _weight(pid).write_text(str(much))
                return
            except BlockingIOError:  # Linux takes ten a second, of everybody together
                sleep(_AGAIN)


def _weight(pid: int) -> Path:
    return Path(f"/proc/{pid}/autogroup")
