"""Commands about the review queue: list, label, snooze."""

from __future__ import annotations

from datetime import UTC, datetime
from getpass import getuser
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.options import Json
from headrace.cli.serve import Name
from headrace.cli.terminal import Row, show, talk

if TYPE_CHECKING:
    from headrace.base.settings import Settings
    from headrace.log.broker import Broker
    from headrace.model.service import Service

Id = Annotated[str, typer.Argument(metavar="ID", help="As `reviews list` shows it.")]
By = Annotated[str | None, typer.Option(help="Whose word it is; default: you.")]

reviews = typer.Typer(
    help="Decisions that wait for a person: list, label, snooze.", no_args_is_help=True, rich_markup_mode=None
)


def register(app: typer.Typer) -> None:
    app.add_typer(reviews, name="reviews")


@reviews.command("list")
def listing(
    ctx: typer.Context,
    name: Name,
    snoozed: Annotated[bool, typer.Option("--snoozed", help="Those that were put off instead.")] = False,
    labelled: Annotated[bool, typer.Option("--labelled", help="Those labelled last instead, and by whom.")] = False,
    json: Json = False,
) -> None:
    """List what waits, oldest first."""
    from headrace.base.errors import UsageError
    from headrace.ops import reviews as queue

    if snoozed and labelled:
        raise UsageError("--snoozed and --labelled are two lists", fix="ask for one after the other")
    broker, service = _found(ctx.obj, name)
    found = queue.done(broker, service) if labelled else queue.due(broker, service, snoozed=snoozed)
    rows: list[Row] = [one.as_dict() for one in found]
    if not json:
        ask = service.ask
        names = [ask.id, ask.time, "decision", "score", "reasons"]
        names += ["fraud", "by", "labelled_at"] if labelled else []
        rows = [{name: row.get(name) for name in names} for row in rows]
    show(rows, json=json, empty="none was labelled" if labelled else "nothing waits")


@reviews.command("label")
def label(
    ctx: typer.Context,
    name: Name,
    id: Id,
    fraud: Annotated[bool, typer.Option("--fraud/--genuine", help="What it was.")],
    by: By = None,
) -> None:
    """Say what it was: fraud, or genuine. It leaves the list, and the label goes to its topic. Said again of the same
    ID it corrects what was said before."""
    from headrace.ops import reviews as queue

    queue.label(*_found(ctx.obj, name), id, fraud=fraud, by=by or getuser())
    talk(f"{id} is {'fraud' if fraud else 'genuine'}")


@reviews.command("snooze")
def snooze(
    ctx: typer.Context,
    name: Name,
    id: Id,
    duration: Annotated[str, typer.Option("--for", help="How long, like 2 h.")] = "1 h",
    by: By = None,
) -> None:
    """Put a review off."""
    from headrace.base.duration import duration as read
    from headrace.ops import reviews as queue

    until = datetime.now(UTC) + read(duration)
    queue.snooze(*_found(ctx.obj, name), id, until=until, by=by or getuser())
    talk(f"{id} is put off until {until:%Y-%m-%d %H:%M} UTC")


def _found(settings: Settings, name: str) -> tuple[Broker, Service]:
    from headrace.ops import apps, endpoints
    from headrace.ops.serve import service_of

    return endpoints.broker(settings), service_of(apps.find(name, settings))
