"""The tie between a foreground run and the parts it started: a guard process that outlives the run, but not by much."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from headrace.stack import guard


@dataclass(frozen=True, slots=True)
class Tie:
    """A guard, and the end of the pipe that tells it we live."""

    owner: str
    guard: subprocess.Popen[bytes]
    pipe: int


_ties: dict[Path, Tie] = {}  # one per home directory; held until this process ends, however it ends


def tie(home: Path) -> str:
    """Starts the guard of this home directory, and returns the owner that parts must carry in their notes."""
    if home in _ties and _ties[home].guard.poll() is None:
        return _ties[home].owner
    owner = secrets.token_hex(8)
    watched, held = os.pipe()
    command = [sys.executable, "-I", "-S", guard.__file__, "watch", str(home), owner, str(os.getpid())]
    watcher = subprocess.Popen(
        command,
        stdin=watched,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,  # a Ctrl-C that ends the run must not end its guard
    )
    os.close(watched)
    _ties[home] = Tie(owner, watcher, held)
    return owner


def untie(home: Path) -> None:
    """Lets the guard go. It ends what is still tied to it, so stop the parts first."""
    if (found := _ties.pop(home, None)) is not None:
        os.close(found.pipe)
        found.guard.wait()
