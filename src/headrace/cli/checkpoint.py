"""Commands about checkpoints: show, verify, repair, rescale."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli import findings
from headrace.cli.options import Json
from headrace.cli.terminal import Row, data, show, show_one, talk

if TYPE_CHECKING:
    from headrace.observe.checkpoint import CheckpointView

EXIT_FOUND = 1

checkpoint = typer.Typer(
    help="The state of flows: show, verify, repair, rescale.", no_args_is_help=True, rich_markup_mode=None
)

App = Annotated[str | None, typer.Argument(metavar="[APP]", help="As for run; default: all that have state here.")]
Flow = Annotated[str | None, typer.Option("--flow", help="One flow of the app.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do it; without this it only says what would happen.")]


def register(app: typer.Typer) -> None:
    app.add_typer(checkpoint, name="checkpoint")


@checkpoint.command("show")
def look(ctx: typer.Context, name: App = None, flow: Flow = None, json: Json = False) -> None:
    """Show how far each flow came and what state it keeps. Also while it runs."""
    from headrace.ops import checkpoints

    views = checkpoints.show(ctx.obj, name, flow)
    if json:
        show([_all(view) for view in views], json=True)
        return
    for number, view in enumerate(views):
        if number:
            data("")
        show_one(_words(view), json=False)
        if view.reached:
            show([_reached(view, n) for n in range(len(view.reached))], json=False)


@checkpoint.command("verify")
def verify(ctx: typer.Context, name: App = None, flow: Flow = None, json: Json = False) -> None:
    """Look for damage: torn and flipped files, gaps, missing state. Exit code 1 if there is some."""
    from headrace.ops import checkpoints

    rows: list[Row] = []
    grave = 0
    for kept, found in checkpoints.verify(ctx.obj, name, flow):
        rows += [{"flow": kept.name, **findings.row(one)} for one in found]
        grave += sum(one.severity in ("warning", "error") for one in found)
        if not json:
            talk(f"{kept.name} in {kept.checkpoint.folder}")
            for one in found:
                findings.say(one)
    if json:
        show(rows, json=True)
    if grave:
        raise typer.Exit(EXIT_FOUND)


@checkpoint.command("repair")
def repair(ctx: typer.Context, name: App = None, flow: Flow = None, yes: Yes = False, json: Json = False) -> None:
    """Mend what is safe to mend. Nothing is deleted, only set aside. Exit code 1 if damage is left."""
    from headrace.ops import checkpoints

    rows: list[Row] = []
    left = 0
    for kept, done in checkpoints.repair(ctx.obj, name, flow, yes=yes):
        left += len(done.left)
        mends = [{"what": one.what, "why": one.why, "files": [str(file) for file in one.files]} for one in done.mends]
        rows.append({"flow": kept.name, "done": yes, "mends": mends, "left": [findings.row(one) for one in done.left]})
        if json:
            continue
        for one in done.mends:
            talk(f"{kept.name}: {one.what}\n  why:   {one.why}")
        for finding in done.left:
            findings.say(finding)
        if done.aside is not None:
            talk(f"{kept.name}: what was taken away is in {done.aside}")
        elif not done.mends:
            talk(f"{kept.name}: nothing {'that is safe to mend' if done.left else 'to mend'}")
        else:
            talk("nothing was changed; add --yes to do it")
    if json:
        show(rows, json=True)
    if left:
        raise typer.Exit(EXIT_FOUND)


@checkpoint.command("rescale")
def rescale(
    ctx: typer.Context,
    partitions: Annotated[int, typer.Option("--partitions", min=1, help="Partitions of keyed state.")],
    name: App = None,
    flow: Flow = None,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Give keyed state another number of partitions. The old state is kept beside."""
    from headrace.ops import checkpoints

    rows: list[Row] = []
    for kept, done in checkpoints.rescale(ctx.obj, partitions, name, flow, yes=yes, say=talk):
        aside = None if done.aside is None else str(done.aside)
        rows.append({"flow": kept.name, "from": done.before, "to": partitions, "done": bool(aside), "kept": aside})
    show(rows, json=json)
    if not yes and not json:
        talk("nothing was changed; add --yes to do it")


# -- views as rows


def _words(view: CheckpointView) -> Row:
    from headrace.cli.terminal import text_of

    plan = {None: "the app is not at hand", True: "as the app declares it", False: "not what the app declares"}
    unfinished = "" if view.planned == view.committed else f"; {view.planned} was planned and runs again"
    keys = ", ".join(f"{step} {count:,}" for step, count in view.keys.items())
    state = [
        f"{one.partitions} partitions, {one.bytes / 1e6:,.1f} MB in {one.files} files, "
        f"version {one.version} from snapshot {one.snapshot or 'none'}"
        for one in view.state
    ]
    said: Row = {
        "flow": f"{view.flow} ({view.app} {view.version})",
        "where": view.folder,
        "driver": f"process {view.driver}" if view.driver is not None else "none runs",
        "plan": f"made {text_of(view.plan_made)}; {plan[view.same_plan]}",
        "batch": "none yet" if view.committed < 0 else f"{view.committed} committed{unfinished}",
        "watermark": view.watermark,
        "keys": keys,
        **{f"state {one.operator}": words for one, words in zip(view.state, state, strict=True)},
    }
    return said | ({"trouble": view.trouble} if view.trouble else {})


def _reached(view: CheckpointView, at: int) -> Row:
    one = view.reached[at]
    return {
        "topic": one.topic,
        "partition": one.partition,
        "offset": one.offset,
        "end": one.end,
        "records_behind": one.behind,
    }


def _all(view: CheckpointView) -> Row:
    """Every word of it, for machines."""
    from dataclasses import asdict

    state = [asdict(one) for one in view.state]
    reached = [_reached(view, at) for at in range(len(view.reached))]
    return asdict(view) | {"folder": str(view.folder), "state": state, "reached": reached}
