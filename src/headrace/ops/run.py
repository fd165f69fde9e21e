"""Running an app: its topics made, Spark started, one supervised query per flow, until it is stopped or ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import zip_longest
from typing import Any

from headrace.base.duration import duration
from headrace.base.errors import HeadraceError, UsageError
from headrace.base.settings import Settings
from headrace.log import dead, topics
from headrace.log.broker import Broker
from headrace.model.app import App
from headrace.model.topic import Topic
from headrace.observe.growth import Limits
from headrace.observe.snapshot import FlowSnapshot, twin_name
from headrace.ops import endpoints
from headrace.ops.stores import stores_of
from headrace.plan import modes
from headrace.plan.modes import Mode
from headrace.plan.plan import Flow, Plan, build
from headrace.spark.checkpoint import Checkpoint, Held
from headrace.spark.job import Job
from headrace.spark.profile import Profile
from headrace.spark.running import Running
from headrace.spark.session import Spark
from headrace.spark.session import begin as begin_spark

Say = Callable[[str], None]
Tell = Callable[[FlowSnapshot], None]
LOOK = timedelta(milliseconds=200)

PROFILE: dict[Mode, Profile] = {"live": "live", "history": "live", "realtime": "realtime"}


@dataclass(slots=True)
class AppRun:
    """An app that runs. Close it to stop its flows and, if it was started here, Spark."""

    plan: Plan
    spark: Spark
    flows: list[Running] = field(default_factory=list)
    owns_spark: bool = True

    def wait(self) -> None:
        """Until every flow has ended by itself, or one has failed with all its twins; raises its error."""
        while not all(flow.wait(LOOK) for flow in self.flows):
            if self._failed():
                break
        for error in self._failed():
            raise error

    def _failed(self) -> list[HeadraceError]:
        """The last error of each flow that nobody runs any more; one twin goes on without the other."""
        errors: dict[str, list[HeadraceError | None]] = {}
        for flow in self.flows:
            errors.setdefault(flow.snapshot.flow, []).append(flow.error)
        return [twins[-1] for twins in errors.values() if twins[-1] is not None and all(twins)]

    def close(self) -> None:
        for flow in self.flows:
            flow.stop()
        if self.owns_spark:
            self.spark.stop()

    def __enter__(self) -> AppRun:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def run(
    app: App,
    settings: Settings,
    *,
    mode: Mode = "live",
    twins: int = 1,
    twin: int | None = None,
    interval: str | None = None,
    fresh: bool = False,
    spark: Spark | None = None,
    held: Sequence[Held] = (),
    say: Say = lambda _: None,
    tell: Tell = lambda _: None,
) -> AppRun:
    """Starts an app from where it stopped; `fresh` forgets its state and begins anew. `interval` is how often a batch
    begins, and in real time how often state is made safe; `twins` are copies of each flow, which do so in turns;
    `twin`: only this one, the others run in processes of their own. `held`: its checkpoints, flow by flow, if they are
    held already."""
    copies = copies_of(twins, twin, mode)
    plan = build(app)
    for flow in plan.flows:  # before anything is asked whether it is there
        modes.check(flow, mode)

    def jobs() -> list[Job]:
        made = jobs_of(plan, settings, mode, copies, interval)
        make_topics(endpoints.broker(settings), plan, app.topics, say)
        if fresh:
            for job in made:
                job.checkpoint.remove()
            if again := [e.target.label for job in made for e in job.flow.exits if not (e.stored and e.key)]:
                say(f"begins anew: all rows of the log go to {', '.join(again)} once more, after those that are there")
        return made

    return launch(plan, jobs, settings, mode=mode, twin=min(copies), spark=spark, held=held, say=say, tell=tell)


def jobs_of(plan: Plan, settings: Settings, mode: Mode, copies: Sequence[int], interval: str | None) -> list[Job]:
    """Of all flows, each as often as there are copies."""
    pace = duration(interval or settings.text(f"{mode}.interval"))
    return [job_of(plan, flow, settings, mode, twin=copy, pace=pace) for flow in plan.flows for copy in copies]


def job_of(plan: Plan, flow: Flow, settings: Settings, mode: Mode, *, twin: int = 1, **more: Any) -> Job:
    """A flow's job where the settings say that broker, stores and checkpoint are. `more`: as Job has it."""
    broker, checkpoint = endpoints.broker(settings), Checkpoint.of(settings.home, plan, flow, twin=twin)
    stores = stores_of(flow, settings)
    return Job(plan=plan, flow=flow, mode=mode, broker=broker, checkpoint=checkpoint, stores=stores, twin=twin, **more)


def launch(
    plan: Plan,
    prepare: Callable[[], list[Job]],
    settings: Settings,
    *,
    mode: Mode,
    twin: int = 1,
    spark: Spark | None = None,
    held: Sequence[Held] = (),
    say: Say,
    tell: Tell,
) -> AppRun:
    """Starts the jobs of a plan, all or none. Spark comes up while they and what they need are looked at."""
    with ExitStack() as undo:
        if spark is None:
            name = twin_name(plan.app, twin)
            coming = begin_spark(settings, profile=PROFILE[mode], app_name=name, tell=say)
            undo.callback(coming.give_up)
        jobs, taken = prepare(), []
        for job, ours in zip_longest(jobs, held):
            taken.append(job.checkpoint.open(job.flow, held=ours))
            undo.callback(taken[-1].give_back)
            for store in job.stores:
                try:
                    store.open(job.id)
                finally:
                    store.close()
        began = coming.ready() if spark is None else spark
        running = AppRun(plan, began, owns_spark=spark is None)
        undo.callback(running.close)
        limits = growth_limits(settings)
        for job, ours in zip(jobs, taken, strict=True):
            running.flows.append(Running(began, replace(job, limits=limits), tell, held=ours))
        undo.pop_all()
    return running


def copies_of(twins: int, twin: int | None, mode: Mode) -> list[int]:
    """The numbers of the twins that run here."""
    if twins < 1:
        raise UsageError(f"{twins} twins are none", fix="--twins 2")
    if twin is not None and twin < 1:
        raise UsageError(f"there is no twin {twin}", fix="--twin 1, and in another process --twin 2")
    if twin is not None and twins > 1:
        raise UsageError(
            "both --twins and --twin", fix="--twins 2 for two in this process, --twin 2 for the second alone"
        )
    if (twins > 1 or twin is not None) and mode != "realtime":
        raise UsageError(
            "twins are for real time",
            why="every row comes from each of them, under one id; live, rows come exactly once",
            fix="add --realtime, or leave them out",
        )
    return list(range(1, twins + 1)) if twin is None else [twin]


def growth_limits(settings: Settings) -> Limits:
    """From when on state grows too fast."""
    return Limits(
        percent=settings.number("state.growth_percent"),
        over=duration(settings.text("state.growth_over")),
        entries=settings.number("state.growth_entries"),
    )


def make_topics(broker: Broker, plan: Plan, wanted: Iterable[Topic], say: Say) -> None:
    """Makes what is missing of these topics, and of those for dead letters."""
    read = {topic for flow in plan.flows for topic in flow.topics}
    made = topics.ensure(broker, *wanted) + dead.ensure(broker, *sorted(read))
    if made:
        say(f"made topics {', '.join(made)}")
