"""Checkpoints as a person handles them: found by app and flow, shown, verified, repaired, rescaled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from headrace.base.errors import CheckpointDamaged, CheckpointInUse, HeadraceError, UsageError
from headrace.base.settings import Settings
from headrace.log import offsets, topics
from headrace.model.app import App
from headrace.observe.checkpoint import CheckpointView
from headrace.observe.finding import Finding
from headrace.ops import apps, endpoints
from headrace.plan import text
from headrace.plan.plan import Flow, build
from headrace.spark import checkpoint_rescale, checkpoint_verify
from headrace.spark.checkpoint import Checkpoint, Held
from headrace.spark.checkpoint_files import SparkFiles, Torn
from headrace.spark.checkpoint_repair import Mend, mend, mends
from headrace.spark.checkpoint_show import Ends, view
from headrace.spark.commits import commits_topic, last_written
from headrace.spark.session import Spark
from headrace.spark.session import start as start_spark


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A checkpoint that was found. `declared`: its flow as the app has it now, where the app is known."""

    app: str
    version: str
    flow: str
    checkpoint: Checkpoint
    declared: Flow | None = None

    @property
    def name(self) -> str:
        return f"{self.app}/{self.version}/{self.flow}"

    @property
    def lines(self) -> tuple[str, ...] | None:
        return None if self.declared is None else text.lines(self.declared)


def find(settings: Settings, name: str | None = None, flow: str | None = None) -> list[Kept]:
    """The checkpoints of an app, of all its versions; without a name, all there are."""
    declared = {
        (plan.app, plan.version, one.name): one
        for app in _known(settings, name)
        for plan in (build(app),)
        for one in plan.flows
    }
    wanted = {app for app, _, _ in declared}
    found = [
        Kept(
            app=app,
            version=version,
            flow=own,
            checkpoint=Checkpoint(folder=folder),
            declared=declared.get((app, version, own.partition("~")[0])),
        )
        for folder in sorted((settings.home / "state").glob("*/*/*"))
        for app, version, own in [folder.parts[-3:]]
        if (name is None or app == name or app in wanted) and flow in (None, own)
    ]
    if not found:
        raise UsageError(
            f"there is no checkpoint{'' if name is None else f' of {name}'}{'' if flow is None else f', flow {flow}'}",
            why=f"nothing of it is in {settings.home / 'state'}",
            fix="`headrace run` makes one; `headrace checkpoint show` lists all there are",
        )
    return found


def _known(settings: Settings, name: str | None) -> Iterator[App]:
    """The apps whose declarations are at hand; state can be looked at without them."""
    for one in settings.apps if name is None else [name]:
        try:
            yield apps.find(one, settings)
        except HeadraceError:
            continue


def show(settings: Settings, name: str | None = None, flow: str | None = None) -> list[CheckpointView]:
    """How far each came, and what it keeps."""
    ends = _ends(settings)
    return [
        view(kept.checkpoint, app=kept.app, version=kept.version, flow=kept.flow, declared=kept.lines, ends=ends)
        for kept in find(settings, name, flow)
    ]


def _ends(settings: Settings) -> Ends:
    """Asks the broker where partitions end; nothing where none runs."""
    try:
        broker = endpoints.broker(settings)
        there = topics.widths(broker)
    except HeadraceError:
        return lambda _: {}
    return lambda places: offsets.ends(broker, [place for place in places if place[0] in there])


def verify(
    settings: Settings, name: str | None = None, flow: str | None = None
) -> Iterator[tuple[Kept, list[Finding]]]:
    """What is wrong with each. Raises CheckpointInUse: what a driver is writing would look torn."""
    commits = _commits(settings)
    for kept in find(settings, name, flow):
        with closing(_hold(kept)):
            yield kept, checkpoint_verify.verify(kept.checkpoint, declared=kept.lines, commits=commits(kept.app))


def _commits(settings: Settings) -> Callable[[str], str | None]:
    """The id of an app's topic of commits, "" if there is none; None where no broker runs."""
    try:
        broker = endpoints.broker(settings)
        there = topics.widths(broker)
    except HeadraceError:
        return lambda _: None

    def asked(app: str) -> str:
        name = commits_topic(app).name
        return topics.identity(broker, name) if name in there else ""

    return asked


def _hold(kept: Kept) -> Held:
    """Keeps drivers away while it is looked at."""
    if (process := kept.checkpoint.driver()) is not None:
        raise CheckpointInUse(
            f"{kept.name} runs",
            why=f"process {process} writes to its checkpoint, and what is half written would look torn",
            fix=f"stop process {process} first, and before it whoever stands by (run --standby); "
            "`headrace checkpoint show` can look meanwhile",
        )
    return kept.checkpoint.hold()


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """What was or would be mended, the damage that is left, and where the files went if it was done."""

    mends: list[Mend]
    left: list[Finding]
    aside: Path | None = None


def repair(
    settings: Settings, name: str | None = None, flow: str | None = None, *, yes: bool = False
) -> Iterator[tuple[Kept, Repair]]:
    """Mends what is safe to mend; only says so unless `yes`. Raises CheckpointInUse."""
    for kept in find(settings, name, flow):
        with closing(_hold(kept)):
            planned = mends(kept.checkpoint, written=_written(kept, settings))
            aside = mend(kept.checkpoint, planned, datetime.now(UTC)) if yes and planned else None
            gone = {str(file) for one in planned for file in one.files}
            found = checkpoint_verify.verify(kept.checkpoint, declared=kept.lines)
            left = [one for one in found if one.severity in ("warning", "error") and one.where not in gone]
            yield kept, Repair(mends=planned, left=left, aside=aside)


def _written(kept: Kept, settings: Settings) -> int | None:
    """The last batch of which anything stands in an output, as far as it can be known."""
    if kept.declared is None or any(leaving.stored for leaving in kept.declared.exits):
        return None  # a store's own ledger would have to be asked
    guarantees = {leaving.guarantee for leaving in kept.declared.exits}
    if guarantees == {"at-least-once"}:
        return -1  # such a flow leaves no tokens, and may write a batch again
    try:
        query = SparkFiles(folder=kept.checkpoint.spark).query()
        return last_written(endpoints.broker(settings), kept.app, kept.name, query)
    except (HeadraceError, Torn, OSError):
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescaled:
    """From how many partitions; where the old state is kept, if it was done."""

    before: int
    aside: Path | None = None


def rescale(
    settings: Settings,
    partitions: int,
    name: str | None = None,
    flow: str | None = None,
    *,
    yes: bool = False,
    spark: Spark | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Iterator[tuple[Kept, Rescaled]]:
    """Gives keyed state another number of partitions; only says so unless `yes`. Raises CheckpointInUse, and
    CheckpointDamaged for one that is not whole."""
    began = spark
    try:
        for kept in find(settings, name, flow):
            with closing(_hold(kept)):
                damage = [one for one in checkpoint_verify.verify(kept.checkpoint) if one.severity == "error"]
                if damage:
                    what = f"the checkpoint of {kept.name} is damaged"
                    raise CheckpointDamaged(what, why=damage[0].what, fix="`headrace checkpoint verify` says more")
                if yes:
                    checkpoint_rescale.undo_cut_off(kept.checkpoint)
                before = checkpoint_rescale.partitions(kept.checkpoint)
                aside = None
                if yes and before != partitions:
                    began = began or start_spark(settings, app_name="rescale", tell=say)
                    aside = checkpoint_rescale.rescale(began, kept.checkpoint, partitions)
                yield kept, Rescaled(before=before, aside=aside)
    finally:
        if began is not None and spark is None:
            began.stop()
