"""The bank's processes: each a command of `headrace`, started, waited for and ended by its own pid."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import headrace as hr
from bank.progress import Say

COMMAND = (sys.executable, "-m", "headrace")
PATIENCE = 180.0
GRACE = 30.0
OFTEN, WITHIN = 3, 300.0
"""A job that ends more often than this in so many seconds is given up."""
_LOOK = 0.1
_YIELDING = 10
"""How nice a job is that nobody waits for."""


def headrace(*words: str) -> Any:
    """A command that ends; what it says as JSON."""
    ran = subprocess.run([*COMMAND, *words], capture_output=True, text=True, check=False)
    if ran.returncode:
        raise hr.HeadraceError(f"headrace {' '.join(words)} failed", why=ran.stderr.strip())
    return json.loads(ran.stdout or "null")


@contextmanager
def alone(home: Path) -> Iterator[None]:
    """One bank a home: a second would write over the logs of the first, and wait for places that it has."""
    home.mkdir(parents=True, exist_ok=True)
    with (home / "bank.lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise hr.HeadraceError(
                f"a bank runs here already, process {lock.read()}",
                why=f"it has {home}",
                fix="stop it with Ctrl-C, or begin another elsewhere: HEADRACE__HOME=DIR",
            ) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield


@dataclass(slots=True)
class Job:
    """`headrace words...` until it is stopped; what it says is in its log. In a session of its own: a Ctrl-C at the
    terminal is for us, we end it in order. Its stdin is a pipe that only we hold: it ends with us, even by kill -9. One
    that `yields` gets the processor when others do not need it."""

    name: str
    words: Sequence[str]
    log: Path
    yields: bool = False
    process: subprocess.Popen[bytes] = field(init=False)
    ended: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.log.unlink(missing_ok=True)
        self._start()

    def _start(self) -> None:
        with self.log.open("ab") as out:
            self.process = subprocess.Popen(
                [*COMMAND, "--tied", *self.words],
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        if self.yields:
            os.setpriority(os.PRIO_PROCESS, self.process.pid, _YIELDING)

    def until(self, *words: str) -> str:
        """Waits until its log has one of these words; the line that has it first."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if lines := [line for word in words for line in self.said(word)]:
                return lines[0]
            self.check()
            time.sleep(_LOOK)
        raise hr.HeadraceError(f"{self.name} did not begin within {PATIENCE:.0f} s", why=f"see {self.log}")

    def said(self, word: str) -> list[str]:
        """The lines of its log that have a word."""
        return [line for line in self.log.read_text(errors="replace").splitlines() if word in line]

    def check(self) -> None:
        """Raises with its last words if it has ended."""
        if not self.runs:
            said = self.log.read_text(errors="replace").splitlines()[-15:]
            raise hr.HeadraceError(f"{self.name} has ended", why="\n".join(said), fix=f"all it said is in {self.log}")

    @property
    def runs(self) -> bool:
        return self.process.poll() is None

    def keep(self) -> bool:
        """Starts it again if it has ended, and says so; one that ends again and again raises with its last words."""
        if self.runs:
            return False
        now = time.monotonic()
        self.ended = [*(at for at in self.ended if now - at < WITHIN), now]
        if len(self.ended) > OFTEN:
            self.check()
        self._untie()
        self._start()
        return True

    def stop(self) -> None:
        self.interrupt()
        self.wait()

    def interrupt(self) -> None:
        """As Ctrl-C does."""
        if self.runs:
            os.kill(self.process.pid, signal.SIGINT)

    def wait(self) -> None:
        """Until it has ended; one that does not end is killed."""
        try:
            self.process.wait(GRACE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._untie()

    def _untie(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()


def keep(all_of_them: list[Job], say: Say) -> None:
    """Starts whoever has ended again. One that ends again and again is given up if another does the same, else this
    raises with its last words."""
    for job in list(all_of_them):
        try:
            if job.keep():
                say(f"{job.name} had ended, and is started again; see {job.log}")
        except hr.HeadraceError as trouble:
            if not any(other.words == job.words and other.runs for other in all_of_them):
                raise
            all_of_them.remove(job)
            job.wait()
            say(f"goes on without {job.name}: {trouble.what} {OFTEN + 1} times in {WITHIN:.0f} s; see {job.log}")


def stop(all_of_them: Collection[Job]) -> None:
    """At the same time: one that stands by would begin in the place of one that ends before it."""
    with ExitStack() as ends:  # one more Ctrl-C breaks off one wait, not all
        for job in all_of_them:
            job.interrupt()
            ends.callback(job.wait)
