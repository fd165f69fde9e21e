"""A flow's checkpoint directory: whose it is, which plan it belongs to, and that only one driver uses it.

<home>/state/<app>/<version>/<flow>/        of a second twin: <flow>~2/
    plan.txt      the plan's stable text, line by line
    driver.lock   held while a driver runs
    jvm.lock      held by its JVM (jvm/Fence.scala), which may outlive it by a moment
    counts.json   where every row went so far (rule D3)
    sizes.csv     how large the state was, a line a minute: time in ms, keys, rows, bytes
    commits.txt   the id of the topic that says which batch was written last
    answering     as old as the last moment in which a real-time twin kept up with the log (jvm/Ending.scala)
    staged/       rows of the batch that runs, on their way to stores
    rescale.txt   there while a rescale of the state is not done
    rebuild/      there while a rebuild of a store is not done: a checkpoint of its own
    set-aside/    what a repair took away, and state from before a rescale
    spark/        Spark's own checkpoint
"""

from __future__ import annotations

import fcntl
import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import IO

from headrace.base.errors import CheckpointInUse, PlanChanged, RebuildOpen, RescaleOpen
from headrace.base.locks import holder
from headrace.observe.snapshot import twin_name
from headrace.plan import text
from headrace.plan.plan import Flow, Plan
from headrace.spark import checkpoint_place

_LINGERS = 20.0
_LOOK = 0.02
"""Seconds: how long a JVM may live on without its Python, and how often that is looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """The directory of one flow; open it to use it."""

    folder: Path

    @classmethod
    def of(cls, home: Path, plan: Plan, flow: Flow, *, twin: int = 1) -> Checkpoint:
        return cls(folder=home / "state" / plan.app / plan.version / twin_name(flow.name, twin))

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
    def sizes_file(self) -> Path:
        return self.folder / "sizes.csv"

    @property
    def commits_file(self) -> Path:
        return self.folder / "commits.txt"

    @property
    def answering(self) -> Path:
        return self.folder / "answering"

    def answered(self, since: float) -> bool:
        """Whether a real-time driver has kept up with the log after this moment, for some seconds."""
        try:
            return self.answering.stat().st_mtime > since
        except FileNotFoundError:
            return False

    @property
    def staged(self) -> Path:
        return self.folder / "staged"

    @property
    def aside(self) -> Path:
        return self.folder / "set-aside"

    @property
    def rebuild(self) -> Checkpoint:
        return Checkpoint(folder=self.folder / "rebuild")

    @property
    def rescale_file(self) -> Path:
        return self.folder / "rescale.txt"

    def plan(self) -> tuple[str, ...] | None:
        """The text of the plan that the state was made by; None before the first start."""
        return tuple(self.plan_file.read_text().splitlines()) if self.plan_file.exists() else None

    def driver(self) -> int | None:
        """The process that runs from it, if one does."""
        return holder(self._lock_file)

    @property
    def _lock_file(self) -> Path:
        return self.folder / "driver.lock"

    @property
    def fence_file(self) -> Path:
        return self.folder / "jvm.lock"

    def open(self, flow: Flow, *, held: Held | None = None, to_rebuild: bool = False) -> Held:
        """Takes the lock, unless it is held already, then checks the plan. Raises CheckpointInUse, PlanChanged, or what
        was left undone."""
        held = held or self.hold()
        try:
            if self.rebuild.folder.exists() and not to_rebuild:
                raise RebuildOpen(
                    f"a rebuild of a store of {flow.name!r} was cut off",
                    why="the store lacks rows that the flow has written, and will not write again",
                    fix="do it again: headrace rebuild STORE --yes",
                )
            self._check(flow)
            checkpoint_place.settle(self.spark)
        except BaseException:
            held.close()
            raise
        return held

    def remove(self) -> None:
        """Forgets everything: the next start begins anew. Raises CheckpointInUse: a driver's state is not taken away
        under its feet."""
        held = self.hold()
        try:
            for folder in (self.spark, self.staged, self.rebuild.folder):
                shutil.rmtree(folder, ignore_errors=True)
            files = (self.plan_file, self.counts_file, self.sizes_file, self.commits_file, self.rescale_file)
            for file in (*files, self.answering):
                file.unlink(missing_ok=True)
        finally:
            held.close()

    def hold(self, *, patience: float = _LINGERS) -> Held:
        """Takes the lock and looks at nothing. Raises CheckpointInUse. `patience`: for how many seconds it waits for
        the JVM of a driver that has ended; 0: not for a moment."""
        self.folder.mkdir(parents=True, exist_ok=True)
        lock = self._lock_file.open("a+")
        if not _ours(lock, tries=2 if patience else 1):
            lock.seek(0)
            holder = lock.read().strip() or "unknown"
            lock.close()
            raise CheckpointInUse(
                f"another driver runs from {self.folder}",
                why=f"process {holder} holds it; two drivers on one checkpoint would write everything twice",
                fix=f"stop process {holder}, or run under another version",
            )
        try:
            lock.truncate(0)
            lock.write(str(os.getpid()))
            lock.flush()
            self._outwait_jvm(patience)
        except BaseException:
            lock.close()
            raise
        return Held(self, lock)

    def _outwait_jvm(self, patience: float) -> None:
        """A driver that was killed has let go; its JVM notices that a moment later."""
        deadline = monotonic() + patience
        with self.fence_file.open("a") as fence:
            while True:
                try:
                    fcntl.lockf(fence, fcntl.LOCK_EX | fcntl.LOCK_NB)  # let go of when the file is closed
                    return
                except (BlockingIOError, PermissionError) as held:  # of the two each system has its own
                    if monotonic() > deadline:
                        raise CheckpointInUse(
                            f"the JVM of a driver that has ended still runs from {self.folder}",
                            why="it would write beside the one that takes over",
                            fix=f"see who has {self.fence_file} open (lsof), and end it",
                        ) from held
                sleep(_LOOK)

    def _check(self, flow: Flow) -> None:
        if self.rescale_file.exists():
            raise RescaleOpen(
                f"a rescale of {flow.name!r} was cut off",
                why="the logs may name state that was not written",
                fix=f"do it again: headrace checkpoint rescale --flow {flow.name} --partitions N --yes; with the old "
                "number it only undoes what was begun",
            )
        self.check_plan(flow)
        if self.plan() is None:
            written = self.plan_file.with_suffix(".new")
            written.write_text("\n".join(text.lines(flow)) + "\n")
            written.replace(self.plan_file)

    def check_plan(self, flow: Flow) -> None:
        """Raises PlanChanged if its state was made by another plan."""
        before, now = self.plan(), text.lines(flow)
        if before is not None and before != now:
            raise PlanChanged(
                f"the plan of {flow.name!r} is not the one its state was made by",
                why="state of another plan would give wrong results:\n" + text.difference(before, now),
                fix='run it as a new version (hr.App(..., version="v2")), replay history into it, or forget the '
                f"state: headrace run --fresh removes {self.folder}",
            )


def _ours(lock: IO[str], *, tries: int) -> bool:
    """Takes it, if nobody has it. One try may fail by chance: who only looks whether a driver runs has it for a
    moment."""
    for again in range(tries):
        sleep(_LOOK if again else 0)
        with suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
    return False


@dataclass(slots=True)
class Held:
    """A checkpoint with its lock taken; close it when the query has ended."""

    checkpoint: Checkpoint
    _lock: IO[str]

    def give_back(self) -> None:
        """Of a start that was refused: a plan that never ran has no state that would be tied to it."""
        if not self.checkpoint.spark.exists():
            self.checkpoint.plan_file.unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        self._lock.close()
