"""A real driver: `headrace run` as a process of its own, with its own state, on the tests' broker.

Who goes on from its state need not be one: `going_on` does on the tests' Spark, which saves the start of a JVM.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headrace.base.settings import Settings, load
from headrace.log.broker import Broker
from headrace.model.app import App
from headrace.observe.snapshot import Counts
from headrace.ops.run import AppRun, run
from headrace.spark.profile import QUICK_JVM
from headrace.spark.session import Spark
from tests.spark.flowing import TIMEOUT, until


class Driver:
    """A running `headrace ...`: what it has said so far on both streams."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.out: list[str] = []
        self.err: list[str] = []
        self._readers = [_reading(process.stdout, self.out), _reading(process.stderr, self.err)]

    @property
    def snapshots(self) -> list[dict[str, Any]]:
        """Of a run with --json: a line for each batch with rows and each change of state."""
        return [json.loads(line) for line in self.out]

    def until(self, condition: Callable[[], Any], *, within: float = TIMEOUT, every: float = 0.02) -> None:
        """Waits for a condition; fails at once if the driver has ended."""
        try:
            until(lambda: condition() or self.process.poll() is not None, within=within, every=every)
            assert condition(), f"it ended with {self.process.returncode}"
        except AssertionError as broken:
            raise AssertionError(f"{broken}\n{''.join(self.err[-20:])}{''.join(self.out[-3:])}") from None

    def interrupt(self) -> int:
        """Ctrl-C; its exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.ended()

    def ended(self) -> int:
        code = self.process.wait(2 * TIMEOUT)  # it may have to start first
        for reader in self._readers:
            reader.join()
        return code

    def kill(self) -> None:
        """kill -9, and its JVM is gone too, because it notices."""
        child = jvm_of(self.process.pid)
        self.process.kill()
        self.ended()
        until(lambda: not Path(f"/proc/{child}").exists())


def jvm_of(pid: int) -> str:
    """The process id of a driver's JVM."""
    (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return child


def _reading(stream: Any, lines: list[str]) -> threading.Thread:
    reader = threading.Thread(target=lambda: lines.extend(stream), daemon=True)
    reader.start()
    return reader


@contextmanager
def driver(
    folder: Path, settings: Settings, broker: Broker, *arguments: str, failpoint: str = "", postgres: str = ""
) -> Iterator[Driver]:
    """Runs `headrace ...` in a folder that holds its app and its state. `failpoint`: where its JVM is to die, as
    jvm/Failpoint.scala says. `postgres`: the URL of its stores there."""
    environment = os.environ | {
        "HEADRACE__HOME": str(folder / "home"),
        "HEADRACE__CACHE": str(settings.cache),
        "HEADRACE__KAFKA__BOOTSTRAP": broker.bootstrap,
        "HEADRACE__POSTGRES__URL": postgres,
        "HEADRACE__SPARK__DRIVER_MEMORY": "1g",
        "JAVA_TOOL_OPTIONS": f"{' '.join(QUICK_JVM)} -Dheadrace.failpoint={failpoint}",
    }
    command = [sys.executable, "-m", "headrace", *arguments]
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield Driver(process)
        finally:
            process.kill()


class GoingOn:
    """A run of an app in this process."""

    def __init__(self, run: AppRun) -> None:
        self._run = run

    @property
    def counts(self) -> list[Counts]:
        """Of the steps of all flows, so far."""
        return [counts for flow in self._run.flows for counts in flow.snapshot.counts]

    def until(self, condition: Callable[[], Any], *, within: float = TIMEOUT, every: float = 0.02) -> None:
        """Waits for a condition; raises at once what has ended a flow."""
        until(lambda: condition() or any(flow.error for flow in self._run.flows), within=within, every=every)
        self.sound()

    def ended(self) -> None:
        """Waits until a flow has ended by itself; raises why."""
        self._run.wait()

    def sound(self) -> None:
        for flow in self._run.flows:
            if flow.error is not None:
                raise flow.error


@contextmanager
def going_on(folder: Path, spark: Spark, broker: Broker, app: App, *, postgres: str = "") -> Iterator[GoingOn]:
    """Runs the app as `headrace run` does, from the state that a driver has left in that folder. No error is left
    unsaid."""
    where = {"home": str(folder / "home"), "kafka.bootstrap": broker.bootstrap, "postgres.url": postgres}
    with run(app, load(where, root=folder, env={}), spark=spark) as running:
        found = GoingOn(running)
        yield found
    found.sound()
