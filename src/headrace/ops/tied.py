"""The tie of a command to whoever started it: it ends, as by Ctrl-C, when the other end of its stdin is gone."""

from __future__ import annotations

import os
import select
import signal
import stat
import threading
import time

from headrace.base.errors import UsageError

GRACE = 30.0
"""Seconds to end in order. Nobody is left who would kill what hangs."""
_STDIN = 0


def tie() -> None:
    """Whoever started us holds the writing end of our stdin, and no other process does: the system closes it when that
    one ends, even by kill -9."""
    if not stat.S_ISFIFO(os.fstat(_STDIN).st_mode):
        raise UsageError(
            "--tied without a pipe as stdin",
            why="the end of whoever started this is seen by the end of that pipe",
            fix="subprocess.Popen([..., '--tied', ...], stdin=subprocess.PIPE)",
        )
    threading.Thread(target=_watch, name="tied", daemon=True).start()


def _watch() -> None:
    end = select.poll()
    end.register(_STDIN, 0)  # what is written there is not ours to read: only the hang-up is waited for
    end.poll()
    main = threading.main_thread().ident
    assert main is not None
    signal.pthread_kill(main, signal.SIGINT)
    time.sleep(GRACE)  # a daemon thread: the end of the process does not wait for it
    os._exit(1)  # a JVM of ours ends with us
