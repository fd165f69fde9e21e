"""Commands about features: show what they are, get those of a key, check what was logged."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from headrace.cli.options import Json
from headrace.cli.run import Name
from headrace.cli.terminal import show, show_one, talk

Set = Annotated[str, typer.Argument(metavar="NAME", help="A set of features, as `features show` lists them.")]

features = typer.Typer(help="What is known of a key: show, get, check.", no_args_is_help=True, rich_markup_mode=None)


def register(app: typer.Typer) -> None:
    app.add_typer(features, name="features")


@features.command("show")
def shown(
    ctx: typer.Context,
    app: Name,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="One set; default: all of them.")] = None,
    json: Json = False,
) -> None:
    """List an app's sets of features and where they are kept, or the features of one."""
    from headrace.ops import apps
    from headrace.ops import features as found

    rows = found.described(apps.find(app, ctx.obj), name, apps.declared(ctx.obj))
    show(rows, json=json, empty=f'{app} has no features; app.features("card", ...) makes some')


@features.command("get")
def get(
    ctx: typer.Context,
    app: Name,
    name: Set,
    key: Annotated[list[str], typer.Argument(metavar="KEY=VALUE...", help="The key: card_id=c17.")],
    at: Annotated[str | None, typer.Option(help="As of then: 14:03, -5 min, RFC 3339; default: now.")] = None,
    json: Json = False,
) -> None:
    """Tell what is known of a key, from Redis."""
    from headrace.base.clock import read_time
    from headrace.ops import apps
    from headrace.ops import features as found
    from headrace.ops.send import pairs

    moment = None if at is None else read_time(at, now=datetime.now(UTC))
    with found.reader(apps.find(app, ctx.obj), name, ctx.obj, apps.declared(ctx.obj)) as reader:
        (vector,) = reader.get_many([pairs(key)], at=moment)
    show_one(vector, json=json)


@features.command("check")
def check(
    ctx: typer.Context,
    app: Name,
    name: Set,
    table: Annotated[str, typer.Option(help="The table of the lake that has logged vectors.")],
    time: Annotated[str, typer.Option(help="Its column of event times; default: as in the event.")] = "",
    id: Annotated[str, typer.Option(help="Its column of ids; default: as in the event.")] = "",
    source: Annotated[str, typer.Option(help="The table that has the source's rows; default: where it is kept.")] = "",
    at_least: Annotated[float, typer.Option(min=0, max=100, help="So many percent equal, of each feature.")] = 100.0,
    json: Json = False,
) -> None:
    """Compute logged vectors anew from the lake. Says for each feature how many are equal; ends with 1 if too few."""
    from headrace.ops import apps
    from headrace.ops import features as found

    with found.reader(apps.find(app, ctx.obj), name, ctx.obj, apps.declared(ctx.obj)) as reader:
        checked = reader.check(table, time=time, id=id, source=source)
    ends = int(any(100 * match.rate < at_least for match in checked.features))
    if json:
        show_one(checked.as_dict(), json=True)
        raise typer.Exit(ends)
    show([{"feature": m.feature, "rows": m.rows, "equal": m.equal, "match": f"{m.rate:.4%}"} for m in checked.features],
         json=False)  # fmt: skip
    for match in checked.features:
        for one in match.examples:
            row = ", ".join(f"{column} {value}" for column, value in one.row.items())
            talk(f"{match.feature} was {one.logged}, and is {one.recomputed}: {row}")
    if checked.missing:
        talk(f"{checked.missing:,} of {checked.rows:,} rows are not in the lake, or not yet; they were not compared")
    raise typer.Exit(ends)
