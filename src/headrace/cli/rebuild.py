"""The command about stores: rebuild."""

from __future__ import annotations

from typing import Annotated

import typer

from headrace.cli.options import Json
from headrace.cli.run import Watch
from headrace.cli.terminal import Row, show, show_one, talk


def register(app: typer.Typer) -> None:
    app.command("rebuild")(rebuild)


def rebuild(
    ctx: typer.Context,
    store: Annotated[str, typer.Argument(help="A store: postgres:card_spend, or its name alone.")],
    app: Annotated[str | None, typer.Option("--app", help="The app; default: the only one in headrace.toml.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do it; without this it only says what would happen.")] = False,
    json: Json = False,
) -> None:
    """Drop a store and fill it again from the log. Says what it will read; does it with --yes."""
    from headrace.base.errors import AppNotFound
    from headrace.ops import apps
    from headrace.ops.rebuild import plan_rebuild
    from headrace.ops.rebuild import rebuild as begin

    found = apps.chosen(app, ctx.obj)
    if found is None:
        raise AppNotFound("which app is not clear", why="headrace.toml names none", fix="say --app NAME")
    chosen = plan_rebuild(found, store, ctx.obj)
    rows: list[Row] = [
        {"flow": refill.flow.name, "topic": topic, "partition": partition, "from": start, "to": end}
        for refill in chosen.refills
        for (topic, partition), (start, end) in refill.reads.items()
    ]
    label = chosen.store.target.label
    if json:
        show_one({"store": label, "done": yes, "reads": rows}, json=True)
    else:
        show(rows, json=False, empty=f"no flow has written to {label} yet")
    for (topic, partition), missing in (lost for refill in chosen.refills for lost in refill.gone.items()):
        talk(f"the first {missing:,} records of {topic}/{partition} are gone: what came of them will not come again")
    if not rows:
        return
    if not yes:
        talk(f"would drop {label} and fill it from these; nothing was changed, add --yes to do it")
        return
    begin(chosen, ctx.obj, say=talk, tell=Watch(json).take)
    talk(f"{label} is filled; headrace run {found.name} goes on from there")
