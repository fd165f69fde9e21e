"""Instants at which a test lets this process die as kill -9 would: HEADRACE_FAILPOINT=postgres-after-rows@3, in batch 3
or later; with `@stop` at the end it freezes there, until somebody sends SIGCONT.

Those of every store: <kind>-before-rows (nothing of the batch is written yet, though at most once it is noted),
<kind>-after-rows (all rows are written, the batch is not noted or not committed), <kind>-after-commit.
"""

from __future__ import annotations

import os
import re
import signal

NAME = "HEADRACE_FAILPOINT"
_CHOSEN = re.compile(r"([a-z-]+)@(\d+)(@stop)?")


def reach(name: str, batch: int) -> None:
    chosen = _CHOSEN.fullmatch(os.environ.get(NAME, ""))
    if chosen and chosen[1] == name and batch >= int(chosen[2]):
        del os.environ[NAME]  # who was frozen goes on
        os.kill(os.getpid(), signal.SIGSTOP if chosen[3] else signal.SIGKILL)
