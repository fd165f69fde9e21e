"""A file system that is soon full, for a script that runs on it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


def on_small_disk(size: str, disk: Path, script: str, *arguments: object) -> str:
    """Runs a Python script with a file system of that size at `disk`, its first argument, in a mount namespace that
    goes away with it; gives what it prints."""
    unshare = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--map-root-user"]
    mount = 'mount -t tmpfs -o size="$1" none "$2" || exit 77; shift; shift; exec "$@"'
    command = ["sh", "-c", mount, "sh", size, str(disk)]
    try:
        done = subprocess.run(
            [*unshare, *command, sys.executable, "-c", script, str(disk), *map(str, arguments)],
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        pytest.skip("NOT TESTED: a full disk (there is no `unshare` here to mount a small one)")
    if done.returncode == 77 or "unshare failed" in done.stderr or "Operation not permitted" in done.stderr:
        pytest.skip(f"NOT TESTED: a full disk (this system allows no mounts: {done.stderr.strip()})")
    assert done.returncode == 0, done.stderr
    return done.stdout
