"""Locks: who holds one is told, and not disturbed."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from headrace.base.locks import holder


def test_who_holds_a_lock_is_told(tmp_path: Path) -> None:
    file = tmp_path / "driver.lock"
    assert holder(file) is None
    with file.open("a+") as lock:
        assert holder(file) is None
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert holder(file) == 0
        lock.write(str(os.getpid()))
        lock.flush()
        assert holder(file) == os.getpid()
    assert holder(file) is None
