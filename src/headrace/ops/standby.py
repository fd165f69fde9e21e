"""Standing by: a driver that is up and warm, and takes the place of the first that ends.

A place is an app's, or one of its twins': the locks of its checkpoints. Who finds one free takes it at once, as any run
does; who finds none lets Spark come up, runs the flows dry, and waits.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from threading import Event, Thread
from time import monotonic, time

import psutil

from headrace.base.errors import CheckpointInUse, HeadraceError
from headrace.base.patience import CATCHING_UP, STANDING_BY, patience, yield_by
from headrace.base.settings import Settings
from headrace.model.app import App
from headrace.observe.snapshot import twin_name
from headrace.ops import endpoints
from headrace.ops.run import PROFILE, AppRun, Say, Tell, copies_of, jobs_of, make_topics, run
from headrace.plan.modes import Mode
from headrace.plan.plan import Plan, build
from headrace.spark.checkpoint import Checkpoint, Held
from headrace.spark.dry_run import dry_run
from headrace.spark.gateway import JvmEnded
from headrace.spark.job import Job
from headrace.spark.query import forget, prepare
from headrace.spark.session import Coming, Spark, begin, scratch
from headrace.spark.trouble import translate

_LOOK, _AGAIN = 0.1, 2.0
"""Seconds: how often one looks for a place, and when it tries again to begin there."""
_ENVIRONMENT = 3  # the exit code of what is away, and may come back
_OFTEN = timedelta(seconds=0.2)
_YIELDS, _LATELY = 180.0, 5.0
"""Seconds: how long it yields at most, and how old a word of other twins may be."""


@dataclass(frozen=True, slots=True)
class Place:
    """That of one twin: all its checkpoints, held."""

    twin: int
    held: tuple[Held, ...]

    def give_back(self) -> None:
        for one in self.held:
            one.close()


def free_place(plan: Plan, settings: Settings, twins: Sequence[int]) -> Place | None:
    """The first of these that nobody has, no JVM of a driver that has just ended either; it is ours then."""
    for twin in twins:
        with ExitStack() as undo:
            held = []
            try:
                for flow in plan.flows:
                    held.append(Checkpoint.of(settings.home, plan, flow, twin=twin).hold(patience=0))
                    undo.callback(held[-1].close)
            except CheckpointInUse:
                continue
            undo.pop_all()
            return Place(twin, tuple(held))
    return None


def stand_by(
    app: App,
    settings: Settings,
    *,
    mode: Mode = "live",
    twins: int = 1,
    twin: int | None = None,
    interval: str | None = None,
    usual: int | None = None,
    say: Say = lambda _: None,
    tell: Tell = lambda _: None,
) -> AppRun:
    """Runs an app, or one of its twins, as soon as nobody else does; arguments are as in `run`. While it waits it
    yields to all others; `usual`: by how much later, if it does so already. If a broker or a store is away when its
    turn comes, it tries again: those that run go on, too."""
    places, plan = copies_of(twins, twin, mode), build(app)
    usual = patience() if usual is None else usual
    jobs = jobs_of(plan, settings, mode, places, interval)  # raises now what a start would, not when one is waited for
    for job in jobs:
        job.checkpoint.check_plan(job.flow)
    start = partial(run, app, settings, mode=mode, interval=interval, say=say, tell=tell)
    with ExitStack() as undo:
        undo.callback(yield_by, os.getpid(), usual)
        place, spark = free_place(plan, settings, places), None
        if place is None:
            yield_by(os.getpid(), STANDING_BY)
            make_topics(endpoints.broker(settings), plan, app.topics, say)
            _forget_logs(settings.home / "logs", plan.app)
            coming = begin(settings, profile=PROFILE[mode], app_name=_waiting(plan.app, os.getpid()), tell=say)
            undo.callback(coming.give_up)
            yield_by(coming.launched.process.pid, STANDING_BY)
            spark, place = _warm(plan, jobs, settings, places, coming, say)
            undo.callback(spark.stop)
        running = None
        while running is None:
            if spark is not None:
                spark = _in_place(spark, plan, jobs, place, say)
            others = [job.checkpoint for job in jobs if job.twin != place.twin]
            sooner = [job.checkpoint for job in jobs if job.twin < place.twin]
            _yield(spark, max(usual, CATCHING_UP) if _answered(others) or _begun(sooner) else usual)
            try:
                running = start(twin=place.twin if mode == "realtime" else None, spark=spark, held=place.held)
            except BaseException as trouble:
                place.give_back()
                if spark is None or not isinstance(trouble, HeadraceError) or trouble.exit_code != _ENVIRONMENT:
                    raise
                say(f"cannot begin yet: {trouble.what}")
                Event().wait(_AGAIN)
                place = _awaited(spark, plan, settings, places)
        running.owns_spark = True
        Thread(target=_yield_to, args=(others, sooner, running, usual), daemon=True).start()
        undo.pop_all()
    return running


def _in_place(spark: Spark, plan: Plan, jobs: Sequence[Job], place: Place, say: Say) -> Spark:
    """As that of the twin; what was compiled ahead for others is theirs."""
    for job in jobs:
        if job.twin != place.twin:
            forget(spark, job)
    name = twin_name(plan.app, place.twin)
    say(f"takes the place of {name}")
    return spark.renamed(name)


def _yield_to(others: Sequence[Checkpoint], sooner: Sequence[Checkpoint], running: AppRun, usual: int) -> None:
    """So long as other twins answer: what it takes to catch up would be missing to them. At the end of an interval one
    says for a moment that it is away, also where it puts that off: two looks in a row count. Before any answers, to
    those that begin `sooner`: of two that begin together neither would answer soon."""
    deadline, silent = monotonic() + _YIELDS, 0
    if _answered(others) or _begun(sooner):
        _yield(running.spark, max(usual, CATCHING_UP))
    while monotonic() < deadline and _begun(sooner) and not _answered(others):
        if any(flow.wait(_OFTEN) for flow in running.flows):
            break
    while monotonic() < deadline and silent < 2:
        if any(flow.wait(_OFTEN) for flow in running.flows):
            break
        silent = 0 if _answered(others) else silent + 1
    _yield(running.spark, usual)


def _yield(spark: Spark | None, much: int) -> None:
    """A Spark that starts later yields as we do (spark/gateway.py)."""
    yield_by(os.getpid(), much)
    if spark is not None:
        yield_by(spark.gateway.process.pid, much)


def _answered(others: Sequence[Checkpoint]) -> bool:
    """Whether one of these twins keeps up with the log."""
    return any(other.answered(time() - _LATELY) for other in others)


def _begun(others: Sequence[Checkpoint]) -> bool:
    """Whether one of these twins has a driver, if only one that starts."""
    return any(other.driver() is not None for other in others)


def _warm(
    plan: Plan, jobs: Sequence[Job], settings: Settings, twins: Sequence[int], coming: Coming, say: Say
) -> tuple[Spark, Place]:
    """Lets Spark come up, does everything once, and waits for a place."""
    found: list[Place] = []

    def free() -> bool:
        if not found and (place := _free(spark, plan, settings, twins)) is not None:
            undo.callback(place.give_back)
            found.append(place)
        return bool(found)

    with ExitStack() as undo:
        spark = coming.ready()
        undo.callback(spark.stop)
        for job in {job.flow.name: job for job in jobs}.values():  # twins do the same
            if not free():
                say(f"{job.flow.name}: a dry run, from the log into nothing")
                if (trouble := dry_run(spark, job, scratch(settings.home / "spark" / "dry"), free)) is not None:
                    say(f"{job.flow.name}: the dry run ended, so taking over will take longer: {trouble.what}")
        for job in jobs:
            if not free():
                prepare(spark, job)
        if not free():
            say(f"stands by for {' or '.join(twin_name(plan.app, twin) for twin in twins)}")
            found.append(_awaited(spark, plan, settings, twins))
        undo.pop_all()
    return spark, found[0]


def _awaited(spark: Spark, plan: Plan, settings: Settings, twins: Sequence[int]) -> Place:
    while (place := _free(spark, plan, settings, twins)) is None:
        Event().wait(_LOOK)
    return place


def _free(spark: Spark, plan: Plan, settings: Settings, twins: Sequence[int]) -> Place | None:
    """A free place, for a Spark that runs: another would take one that it cannot fill."""
    if not spark.gateway.alive:
        raise translate(JvmEnded(), spark.log, alive=False)
    return free_place(plan, settings, twins)


def _waiting(app: str, pid: int | str) -> str:
    """What a Spark is called that has no place yet, and its log with it; several may wait."""
    return f"{app}~standby-{pid}"


def _forget_logs(logs: Path, app: str) -> None:
    """Of those that have ended before they had a place."""
    for log in logs.glob(f"spark-{_waiting(app, '*')}.log*"):
        pid = log.name.partition(f"{_waiting(app, '')}")[2].partition(".")[0]
        if pid.isdigit() and not psutil.pid_exists(int(pid)):
            log.unlink(missing_ok=True)
