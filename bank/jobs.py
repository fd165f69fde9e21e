"""The bank's processes: each a command of `headrace`, started, waited for and ended by its own pid."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import headrace as hr

COMMAND = (sys.executable, "-m", "headrace")
PATIENCE = 180.0
GRACE = 30.0
_LOOK = 0.1


@dataclass(frozen=True, slots=True)
class Job:
    """A command that runs until it is stopped; what it says is in its log."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def until(self, word: str, times: int = 1) -> str:
        """Waits until its log has a word so often; the line that has it first."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            lines = [line for line in self.log.read_text(errors="replace").splitlines() if word in line]
            if len(lines) >= times:
                return lines[0]
            self.check()
            time.sleep(_LOOK)
        raise hr.HeadraceError(f"{self.name} did not begin within {PATIENCE:.0f} s", why=f"see {self.log}")

    def check(self) -> None:
        """Raises with its last words if it has ended."""
        if self.process.poll() is not None:
            said = self.log.read_text(errors="replace").splitlines()[-15:]
            raise hr.HeadraceError(f"{self.name} has ended", why="\n".join(said), fix=f"all it said is in {self.log}")

    def stop(self) -> None:
        """As Ctrl-C does; one that does not end is killed."""
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGINT)
        try:
            self.process.wait(GRACE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def start(name: str, words: Sequence[str], logs: Path) -> Job:
    """Starts `headrace words...` in a session of its own: a Ctrl-C at the terminal is for us, we end it in order."""
    log = logs / f"{name}.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*COMMAND, *words], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
        )
    return Job(name, process, log)
