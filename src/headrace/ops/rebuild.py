"""Rebuilding a store: it is dropped, and filled from the log up to where the flows that feed it have come."""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from dataclasses import dataclass, replace
from difflib import get_close_matches

from headrace.base.errors import LogError, UsageError
from headrace.base.settings import Settings
from headrace.log import offsets
from headrace.log.broker import Broker
from headrace.log.offsets import Place
from headrace.model.app import App
from headrace.model.declared import Read
from headrace.ops import endpoints
from headrace.ops.run import Say, Tell, launch
from headrace.ops.stores import store_of
from headrace.plan.plan import Exit, Flow, Plan, build, topic_of
from headrace.spark.checkpoint import Checkpoint
from headrace.spark.checkpoint_files import Planned, SparkFiles, read_planned
from headrace.spark.commits import last_written, take_over
from headrace.spark.job import Job, Span, id_of
from headrace.spark.session import Spark


@dataclass(frozen=True, slots=True, kw_only=True)
class Refill:
    """A flow that feeds the store: the last batch that it wrote there, and where the log begins now."""

    flow: Flow
    checkpoint: Checkpoint
    last: Planned
    begins: dict[Place, int]

    @property
    def reads(self) -> dict[Place, tuple[int, int]]:
        """From where to where each partition is read."""
        return {place: (min(self.begins[place], end), end) for place, (_, end) in self.last.reads.items()}

    @property
    def gone(self) -> dict[Place, int]:
        """Partitions of streams whose first records the log does not keep any more, and how many. A table's older
        versions may go: its rows stay."""
        streams = {topic_of(source) for source in self.flow.sources if isinstance(source.node, Read)}
        return {place: start for place, (start, _) in self.reads.items() if start > 0 and place[0] in streams}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuild:
    """What a rebuild will do: shown before it starts."""

    plan: Plan
    store: Exit
    refills: tuple[Refill, ...]


def plan_rebuild(app: App, name: str, settings: Settings) -> Rebuild:
    """Looks how far the flows have come that feed a store, by its label or its name. Nobody may run them meanwhile."""
    plan = build(app)
    store = _chosen(plan, name)
    with ExitStack() as held:
        return Rebuild(plan=plan, store=store, refills=_refills(plan, store, settings, held))


def rebuild(
    chosen: Rebuild,
    settings: Settings,
    *,
    spark: Spark | None = None,
    say: Say = lambda _: None,
    tell: Tell = lambda _: None,
) -> None:
    """Drops the store and fills it, unless nobody has written to it; flows are held until it is done. If it is cut off,
    they do not start before it was done again."""
    with ExitStack() as held:
        refills = _refills(chosen.plan, chosen.store, settings, held)  # again: they may have run since
        if not refills:
            return
        jobs = [_job(chosen, refill, settings) for refill in refills]
        for refill in refills:
            refill.checkpoint.rebuild.remove()
        store = store_of(chosen.store, settings)
        store.drop()
        store.close()
        say(f"dropped {chosen.store.target.label}")
        with launch(chosen.plan, lambda: jobs, settings, mode="history", spark=spark, say=say, tell=tell) as running:
            running.wait()
        for refill in refills:
            shutil.rmtree(refill.checkpoint.rebuild.folder)


def _refills(plan: Plan, store: Exit, settings: Settings, held: ExitStack) -> tuple[Refill, ...]:
    """Of the flows that have written to the store; their checkpoints are held until `held` is closed."""
    broker = endpoints.broker(settings)
    found = []
    for flow in plan.flows:
        checkpoint = Checkpoint.of(settings.home, plan, flow)
        if all(leaving.target != store.target for leaving in flow.stores) or not checkpoint.plan_file.exists():
            continue
        held.callback(checkpoint.open(flow, to_rebuild=True).close)
        files = SparkFiles(folder=checkpoint.spark)
        last = max(_written(plan, flow, broker, files), *files.committed(), -1) if files.planned() else -1
        if last >= 0:
            planned = read_planned(files.planned()[last])
            begins = offsets.beginnings(broker, planned.reads)
            found.append(Refill(flow=flow, checkpoint=checkpoint, last=planned, begins=begins))
    return tuple(found)


def _written(plan: Plan, flow: Flow, broker: Broker, files: SparkFiles) -> int:
    """The last batch whose token is there: it was written everywhere, whether Spark knows or not, and nobody writes it
    again."""
    id = id_of(plan, flow)
    take_over(broker, id)
    written = last_written(broker, plan.app, id, files.query())
    if written is None:
        raise LogError(
            f"it is not decided which batch of {flow.name} was written last",
            why="a transaction of another flow of this app is open",
            fix="try again in a moment; if that flow's driver died, start it, or wait ten minutes",
        )
    return written


def _job(chosen: Rebuild, refill: Refill, settings: Settings) -> Job:
    """The flow over what it has read, with the store as its only exit. Time goes as far as it had come, and no further:
    what is still open stays so."""
    label = chosen.store.target.label
    exits = tuple(leaving for leaving in refill.flow.exits if leaving.target.label == label)
    until = {place: end for place, (_, end) in refill.reads.items()}
    return Job(
        plan=chosen.plan,
        flow=replace(refill.flow, exits=exits),
        mode="history",
        broker=endpoints.broker(settings),
        checkpoint=refill.checkpoint.rebuild,
        stores=(store_of(exits[0], settings),),
        only_stores=True,
        span=Span(until=until, time_ends=refill.last.watermark or False),
    )


def _chosen(plan: Plan, name: str) -> Exit:
    stores = {leaving.target.label: leaving for flow in plan.flows for leaving in flow.stores}
    named = [label for label, leaving in stores.items() if leaving.target.name == name]
    if name not in stores and len(named) != 1:
        near = get_close_matches(name, stores, 1)
        raise UsageError(
            f"{name!r} names {len(named)} stores of {plan.app}" if named else f"{plan.app} has no store {name!r}",
            why=f"its stores are {', '.join(stores)}" if stores else "it writes only topics, which are the log itself",
            fix=f"did you mean {(named or near)[0]!r}?" if named or near else "",
        )
    return stores.get(name) or stores[named[0]]
