"""The driver under test: `headrace run` as a process group of its own, as a person or a service would start it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import psutil

from headrace.spark.profile import QUICK_JVM

APP = "headrace.chaos.workload:bank"


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """A running driver; its home holds its state, its words and its failpoint."""

    home: Path
    process: subprocess.Popen[bytes]

    @classmethod
    def start(cls, home: Path, settings: dict[str, str]) -> Driver:
        """`settings` are environment variables, as HEADRACE__KAFKA__BOOTSTRAP."""
        home.mkdir(parents=True, exist_ok=True)
        failpoint(home).unlink(missing_ok=True)
        environment = os.environ | settings | {
            "HEADRACE__HOME": str(home),
            # Quick ones: there are many starts here.
            "JAVA_TOOL_OPTIONS": f"{' '.join(QUICK_JVM)} -Dheadrace.failpoint.file={failpoint(home)}",
        }  # fmt: skip
        with log(home).open("ab") as words:
            process = subprocess.Popen(
                [sys.executable, "-m", "headrace", "run", APP],
                cwd=home,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=words,
                stderr=words,
                start_new_session=True,
            )
        return cls(home=home, process=process)

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    @property
    def jvm(self) -> int | None:
        """The process of its JVM, if it has come so far."""
        return next((p.pid for p in self._children() if p.name() == "java"), None)

    @property
    def workers(self) -> list[int]:
        """Processes of Python workers: the children of the one that forks them."""
        below = {p.pid: p.ppid() for p in self._children() if p.name().startswith("python")}
        return [pid for pid, parent in below.items() if parent in below]

    def signal(self, number: signal.Signals) -> None:
        """To the Python process and its JVM."""
        for pid in (self.process.pid, self.jvm):
            if pid is not None:
                os.kill(pid, number)

    def arm(self, what: str) -> None:
        """A failpoint for the batches to come, as jvm/Failpoint.scala reads it; it is used once."""
        draft = failpoint(self.home).with_suffix(".new")
        draft.write_text(what)
        draft.replace(failpoint(self.home))

    @property
    def armed(self) -> bool:
        return failpoint(self.home).exists()

    def stop(self, patience: float = 60) -> int:
        """Ctrl-C; its exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(patience)

    def kill(self) -> None:
        """kill -9 of all of it, and nothing of it is left."""
        left = [psutil.Process(self.process.pid), *self._children()] if self.alive else []
        for one in left:
            _kill(one.pid)
        psutil.wait_procs(left, timeout=30)
        self.process.wait(30)

    def words(self, count: int = 2000) -> str:
        """The last it has said."""
        with log(self.home).open("rb") as file:
            file.seek(max(0, log(self.home).stat().st_size - count))
            return file.read().decode(errors="replace")

    def _children(self) -> list[psutil.Process]:
        try:
            return [p for p in psutil.Process(self.process.pid).children(recursive=True) if p.is_running()]
        except psutil.NoSuchProcess:
            return []


def failpoint(home: Path) -> Path:
    return home / "failpoint"


def log(home: Path) -> Path:
    return home / "driver.log"


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
