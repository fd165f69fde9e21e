"""Commands about consumer groups: list them, measure their lag, move them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli.options import Json, Topic
from headrace.cli.terminal import Row, console, data, json_text, show, show_one, talk

if TYPE_CHECKING:
    from headrace.log.groups import Lag

WATCH_SECONDS = 2.0


def register(app: typer.Typer) -> None:
    app.command("groups")(groups)
    app.command("lag")(lag)
    app.command("seek")(seek)


def groups(ctx: typer.Context, json: Json = False) -> None:
    """List the consumer groups and who reads in them."""
    from headrace.ops import endpoints
    from headrace.ops import groups as found

    rows: list[Row] = []
    for group in found.listing(endpoints.broker(ctx.obj)):
        members: list[Any] = [
            {
                "id": one.id,
                "name": one.name,
                "client": one.client,
                "host": one.host,
                "partitions": [f"{topic}/{partition}" for topic, partition in one.places],
            }
            for one in group.members
        ]
        read = sorted({place[0] for one in group.members for place in one.places})
        rows.append({"group": group.name, "state": group.state, "members": members if json else len(members)})
        if not json:
            rows[-1]["reading"] = ", ".join(read) or None
    show(rows, json=json, empty="no groups yet; a consumer makes one when it joins")


def lag(
    ctx: typer.Context,
    group: Annotated[str | None, typer.Argument(help="One group; default: all of them.")] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Look again every two seconds; Ctrl-C ends.")] = False,
    json: Json = False,
) -> None:
    """Show how far groups are behind. Per partition, in records and seconds."""
    from headrace.ops import endpoints
    from headrace.ops import groups as found

    broker = endpoints.broker(ctx.obj)

    def look() -> list[Row]:
        return [_lag_row(name, one) for name, one in found.lag(broker, group)]

    if not watch:
        show(look(), json=json, empty="nothing is read by a group yet")
    else:
        _watch(look, json)


def _lag_row(group: str, one: Lag) -> Row:
    return {
        "group": group,
        "topic": one.topic,
        "partition": one.partition,
        "committed": one.committed,
        "end": one.end,
        "records_behind": one.records,
        "seconds_behind": round(one.seconds, 3),
    }


def _watch(look: Any, json: bool) -> None:
    """On a terminal the table stands still and its figures move; in a pipe each look is written below the last."""
    import time

    from headrace.cli.terminal import render

    out = console()
    while True:
        rows = look()
        if json:
            for row in rows:
                data(json_text(row))
        elif out.is_terminal:
            out.clear()
            data(render(rows) if rows else "nothing is read by a group yet")
            talk("every two seconds; Ctrl-C ends")
        else:
            show(rows, json=False, empty="nothing is read by a group yet")
        time.sleep(WATCH_SECONDS)


def seek(
    ctx: typer.Context,
    group: Annotated[str, typer.Argument(help="Name of the group.")],
    topic: Topic,
    to: Annotated[str, typer.Option("--to", help="earliest, latest, an offset, or a time: 14:03, '-2 h'.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do it; without this it only says what would happen.")] = False,
    json: Json = False,
) -> None:
    """Move a group to another place. Says what will be read again or skipped; does it with --yes."""
    from headrace.ops import endpoints
    from headrace.ops import groups as found

    done = found.seek(endpoints.broker(ctx.obj), group, topic, to, dry_run=not yes)
    moves: list[Row] = [
        {
            "partition": move.partition,
            "at": move.at,
            "to": move.to,
            "read_again": move.again,
            "skipped": move.skipped,
        }
        for move in done.moves
    ]
    if json:
        show_one({"group": group, "topic": topic, "done": yes, "moves": moves}, json=True)
        return
    show(moves, json=False)
    talk(f"{'moved' if yes else 'would move'}: {done}")
    if not yes:
        talk("nothing was changed; add --yes to do it")
