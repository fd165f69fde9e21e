"""A flow's checkpoint directory: whose it is, which plan it belongs to, and that only one driver uses it.

<home>/state/<app>/<version>/<flow>/
    plan.txt      the plan's stable text, line by line
    driver.lock   held while a driver runs
    counts.json   where every row went so far (rule D3)
    commits.txt   the id of the topic that says which batch was written last
    staged/       rows of the batch that runs, on their way to stores
    spark/        Spark's own checkpoint
"""

from __future__ import annotations

import fcntl
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from headrace.base.errors import CheckpointInUse, PlanChanged
from headrace.plan import text
from headrace.plan.plan import Flow, Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """The directory of one flow; open it to use it."""

    folder: Path

    @classmethod
    def of(cls, home: Path, plan: Plan, flow: Flow, *, suffix: str = "") -> Checkpoint:
        return cls(folder=home / "state" / plan.app / f"{plan.version}{suffix}" / flow.name)

    @property
    def spark(self) -> Path:
        return self.folder / "spark"

    @property
    def plan_file(self) -> Path:
        return self.folder / "plan.txt"

    @property
    def counts_file(self) -> Path:
        return self.folder / "counts.json"

    @property
    def commits_file(self) -> Path:
        return self.folder / "commits.txt"

    @property
    def staged(self) -> Path:
        return self.folder / "staged"

    def open(self, flow: Flow) -> Held:
        """Takes the lock, then checks the plan. Raises CheckpointInUse or PlanChanged."""
        held = self._hold()
        try:
            self._check(flow)
        except BaseException:
            held.close()
            raise
        return held

    def remove(self) -> None:
        """Forgets everything: the next start begins anew. Raises CheckpointInUse: a driver's state is not taken away
        under its feet."""
        held = self._hold()
        try:
            for folder in (self.spark, self.staged):
                shutil.rmtree(folder, ignore_errors=True)
            for file in (self.plan_file, self.counts_file, self.commits_file):
                file.unlink(missing_ok=True)
        finally:
            held.close()

    def _hold(self) -> Held:
        self.folder.mkdir(parents=True, exist_ok=True)
        lock = (self.folder / "driver.lock").open("a+")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            holder = lock.read().strip() or "unknown"
            lock.close()
            raise CheckpointInUse(
                f"another driver runs from {self.folder}",
                why=f"process {holder} holds it; two drivers on one checkpoint would write everything twice",
                fix=f"stop process {holder}, or run under another version",
            ) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        return Held(self, lock)

    def _check(self, flow: Flow) -> None:
        now = text.lines(flow)
        if not self.plan_file.exists():
            written = self.plan_file.with_suffix(".new")
            written.write_text("\n".join(now) + "\n")
            written.replace(self.plan_file)
            return
        before = tuple(self.plan_file.read_text().splitlines())
        if before != now:
            raise PlanChanged(
                f"the plan of {flow.name!r} is not the one its state was made by",
                why="state of another plan would give wrong results:\n" + text.difference(before, now),
                fix='run it as a new version (hr.App(..., version="v2")), replay history into it, or forget the '
                f"state: headrace run --fresh removes {self.folder}",
            )


@dataclass(slots=True)
class Held:
    """A checkpoint with its lock taken; close it when the query has ended."""

    checkpoint: Checkpoint
    _lock: IO[str]

    def close(self) -> None:
        self._lock.close()
