"""Commands about dead letters: list, show, retry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.options import Json, Topic
from headrace.cli.terminal import Row, show, show_one, talk

if TYPE_CHECKING:
    from headrace.log.dead import DeadLetter

Id = Annotated[str, typer.Argument(metavar="ID", help="As `dead list` shows it: app/topic/partition/offset.")]

dead = typer.Typer(
    help="Records that could not be read: list, show, retry.", no_args_is_help=True, rich_markup_mode=None
)


def register(app: typer.Typer) -> None:
    app.add_typer(dead, name="dead")


@dead.command("list")
def listing(
    ctx: typer.Context,
    topic: Annotated[str | None, typer.Argument(help="Default: counts over all topics.")] = None,
    json: Json = False,
) -> None:
    """List the dead letters of a topic, or how many each topic has."""
    from headrace.ops import dead as found
    from headrace.ops import endpoints

    broker = endpoints.broker(ctx.obj)
    if topic is None:
        rows: list[Row] = [{"topic": name, "dead": count} for name, count in found.counts(broker)]
    else:
        rows = [
            {"id": one.id, "time": one.time, "reason": one.reason, "error": one.error}
            for one in found.letters(broker, topic)
        ]
    show(rows, json=json, empty="no dead letters" + (f" of {topic}" if topic else ""))


@dead.command("show")
def one(ctx: typer.Context, topic: Topic, id: Id, json: Json = False) -> None:
    """Show a dead letter whole: where it stood, why it failed, its bytes."""
    from headrace.ops import dead as found
    from headrace.ops import endpoints

    show_one(_row(found.letter(endpoints.broker(ctx.obj), topic, id)), json=json)


@dead.command("retry")
def retry(
    ctx: typer.Context,
    topic: Topic,
    id: Annotated[str | None, typer.Argument(metavar="[ID]", help="One letter; default: all of the topic.")] = None,
    json: Json = False,
) -> None:
    """Send dead letters to their app's retry topic, which only that app reads."""
    from headrace.ops import dead as found
    from headrace.ops import endpoints

    sent = found.retry(endpoints.broker(ctx.obj), topic, id)
    if json:
        show([{"id": letter.id} for letter in sent], json=True)
    else:
        apps = ", ".join(sorted({letter.app for letter in sent}))
        talk(f"{len(sent):,} sent to be tried again" + (f" by {apps}" if apps else ""))


def _row(letter: DeadLetter) -> Row:
    return {
        "id": letter.id,
        "app": letter.app,
        "topic": letter.topic,
        "partition": letter.partition,
        "offset": letter.offset,
        "time": letter.time,
        "reason": letter.reason,
        "error": letter.error,
        "key": _text(letter.key),
        "value": _text(letter.value),
        **{f"header {name}": _text(value) for name, value in letter.headers},
    }


def _text(raw: bytes | None) -> str | None:
    return None if raw is None else raw.decode(errors="backslashreplace")
