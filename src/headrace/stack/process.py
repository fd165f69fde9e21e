"""A supervised process: started in a session of its own, ready when it answers, its failure explained."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass

from headrace.stack import failure, guard
from headrace.stack.part import Part, Tell

PATIENCE = 60.0  # seconds until a part that runs must answer; log recovery after a crash takes some
_POLL = 0.02
_LOG_LIMIT = 10 << 20
_PASSED_ON = ("PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH")  # nothing else: PGDATA or JAVA_TOOL_OPTIONS are the user's


class Child(subprocess.Popen[bytes]):
    """A child that may outlive us by design: Python need not warn about it."""

    def __del__(self) -> None:
        pass


_children: list[Child] = []  # kept to be reaped when they end


@dataclass(frozen=True, slots=True, kw_only=True)
class Supervisor:
    """Starts parts on behalf of one `up`; safe to use from several threads, one per part."""

    owner: str  # see guard.Note
    cancelled: threading.Event
    tell: Tell

    def up(self, part: Part) -> bool:
        """Starts a part unless it runs, and returns when it answers: True if this call started it."""
        begun = time.monotonic()
        note = guard.read(part.home)
        if note is not None and note.alive:
            size = part.log.stat().st_size
            if self._answers(part, size, gone=lambda: not note.alive):
                return False  # else it was just ending, as one that was killed does
        try:
            part.home.mkdir(parents=True, exist_ok=True)
            if damage := failure.of_damage(part):
                raise damage
            _turn_over(part)
            command = part.prepare(lambda one_off: self._run(part, one_off))
            child, since = self._launch(part, command)
        except OSError as refused:
            raise failure.of_os(part, refused) from refused
        try:
            if not self._answers(part, since, gone=lambda: child.poll() is not None):
                raise failure.of_exit(part, _log(part, since), child.returncode)
            if alarm := failure.of_alarm(part, _log(part, since)):
                raise alarm
        except BaseException:
            _end(child, part)
            raise
        self.tell(f"{part.name} answers at {part.address} after {time.monotonic() - begun:.1f} s")
        return True

    def _run(self, part: Part, command: Sequence[str]) -> None:
        """Runs a command of a part (initdb, format) to its end."""
        child, since = self._launch(part, command)
        while child.poll() is None:
            if self.cancelled.wait(_POLL):
                _end(child, part)
                raise CancelledError
        (part.home / guard.NOTE).unlink(missing_ok=True)
        if child.returncode != 0:
            raise failure.of_exit(part, _log(part, since), child.returncode)

    def _launch(self, part: Part, command: Sequence[str]) -> tuple[Child, int]:
        """The process, and where in the log its words begin."""
        become = [sys.executable, "-I", "-S", guard.__file__, "become"]
        environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        with part.log.open("ab") as log:
            since = log.tell()
            child = Child(
                [*become, part.home, self.owner, str(int(part.stop)), part.user, *command],
                cwd=part.home,
                env=environment | {"LC_ALL": "C", "TZ": "UTC"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C in the terminal is for us, not for the part
            )
            _children.append(child)
            return child, since

    def _answers(self, part: Part, since: int, *, gone: Callable[[], bool]) -> bool:
        """Waits until a part answers; False if its process is gone before."""
        deadline = time.monotonic() + PATIENCE
        while not part.answers():
            if gone():
                return False
            if time.monotonic() > deadline:
                raise failure.of_silence(part, _log(part, since), PATIENCE)
            if self.cancelled.wait(_POLL):
                raise CancelledError
        return True


def reap() -> None:
    """Collects children that have ended."""
    _children[:] = [child for child in _children if child.poll() is None]


def _end(child: Child, part: Part) -> None:
    guard.end([guard.Note(child.pid, guard.birth(child.pid) or "", "", int(part.stop))])
    child.wait()
    (part.home / guard.NOTE).unlink(missing_ok=True)


def _turn_over(part: Part) -> None:
    if part.log.exists() and part.log.stat().st_size > _LOG_LIMIT:
        part.log.replace(part.log.with_suffix(".log.1"))


def _log(part: Part, since: int) -> str:
    try:
        with part.log.open("rb") as log:
            log.seek(since)
            return log.read().decode(errors="replace")
    except OSError:
        return ""
