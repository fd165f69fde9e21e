"""Commands about records: append them and follow them."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.base.errors import UsageError
from headrace.cli.options import AppName, Json, Topic
from headrace.cli.terminal import console, data, json_text, printable, show_one, talk

if TYPE_CHECKING:
    from headrace.ops.send import Sender, Sent
    from headrace.ops.tail import Line

STDIN = "-"


def register(app: typer.Typer) -> None:
    app.command("send")(send)
    app.command("tail")(tail)


def send(
    ctx: typer.Context,
    topic: Topic,
    pairs: Annotated[
        list[str] | None, typer.Argument(metavar="[FIELD=VALUE...]", help="One event; `-`: JSON lines on stdin.")
    ] = None,
    file: Annotated[str | None, typer.Option("--file", "-f", help="File of JSON lines; `-`: stdin.")] = None,
    key: Annotated[str | None, typer.Option("--key", help="Record key, where no app knows the topic.")] = None,
    app: AppName = None,
    json: Json = False,
) -> None:
    """Append events: typed pairs, a file, or stdin."""
    from headrace.ops import apps, endpoints
    from headrace.ops.send import Sender

    source = STDIN if pairs == [STDIN] else file
    if bool(source) == bool(pairs and pairs != [STDIN]):
        raise UsageError(
            "nothing to send" if not source else "either pairs or a file, not both",
            fix=f"headrace send {topic} FIELD=VALUE ..., or --file events.jsonl, or - for stdin",
        )
    sender = Sender(endpoints.broker(ctx.obj), topic, apps.knowing(topic, app, ctx.obj), key=key, tell=talk)
    _report(_from(source, sender) if source else _one(pairs or [], sender), json)


def _one(pairs: list[str], sender: Sender) -> Sent:
    from headrace.ops import send as sending

    sender.send(sender.typed(sending.pairs(pairs)))
    return sender.finish()


def _from(source: str, sender: Sender) -> Sent:
    """A file is checked whole before its first line is sent; stdin cannot be read twice."""
    from headrace.ops.send import check_lines, send_lines

    if source == STDIN:
        return send_lines(sender, sys.stdin, "stdin")
    path = Path(source)
    try:
        with path.open() as first:
            check_lines(sender, first, source)
        with path.open() as second:
            return send_lines(sender, second, source)
    except OSError as refused:
        raise UsageError(f"{source} cannot be read", why=refused.strerror or str(refused)) from None


def _report(sent: Sent, json: bool) -> None:
    spans = sorted(sent.offsets.items())
    if json:
        offsets = [{"partition": part, "first": first, "last": last} for part, (first, last) in spans]
        show_one({"topic": sent.topic, "event": sent.event, "sent": sent.count, "offsets": offsets}, json=True)
        return
    what = f"{sent.count:,} {sent.event or 'record'}{'' if sent.count == 1 else 's'}"
    places = ", ".join(
        f"{part}/{first:,}" if first == last else f"{part}/{first:,}-{last:,}" for part, (first, last) in spans
    )
    talk(f"sent {what} to {sent.topic}" + (f" at {places} (partition/offset)" if places else ""))


def tail(
    ctx: typer.Context,
    topic: Topic,
    start: Annotated[
        str,
        typer.Option(
            "--from", help="-10 (the last ten), earliest, an offset, or a time: 14:03, 2026-11-03T15:00Z, '-2 h'."
        ),
    ] = "-10",
    follow: Annotated[bool, typer.Option("--follow", "-F", help="Go on as records arrive; Ctrl-C ends.")] = False,
    json: Json = False,
) -> None:
    """Show or follow records, decoded. One a line, in the order of their times."""
    from headrace.ops import endpoints
    from headrace.ops.tail import start_of
    from headrace.ops.tail import tail as lines

    begin, out = start_of(start), console()
    for line in lines(endpoints.broker(ctx.obj), topic, begin, follow=follow):
        if json:
            data(json_text(_as_json(line)))
        else:
            _print(line, out)


def _as_json(line: Line) -> dict[str, Any]:
    from headrace.base.clock import rfc3339

    found = {
        "topic": line.topic,
        "partition": line.partition,
        "offset": line.offset,
        "time": rfc3339(line.time),
        "key": line.key,
        "type": line.type,
        "id": line.id,
        "value": line.value,
    }
    return found if line.raw is None else found | {"raw": line.raw.decode(errors="backslashreplace")}


def _print(line: Line, out: Any) -> None:
    from rich.text import Text

    text = Text(no_wrap=True)
    text.append(f"{line.time.astimezone():%m-%d %H:%M:%S.%f}"[:-3], style="dim")
    text.append(f"  {line.partition}/{line.offset}", style="dim")
    text.append(f"  {'-' if line.key is None else printable(line.key)}", style="bold")
    for part in _body(line):
        text.append("  ")
        text.append_text(part)
    out.print(text, soft_wrap=True)
    out.file.flush()


def _body(line: Line) -> Iterable[Any]:
    from rich.text import Text

    if line.raw is not None:
        return [Text(f"not JSON: {line.raw!r}", style="red")]
    if line.value is None:
        return [Text("deleted (tombstone)", style="yellow")]
    if not isinstance(line.value, dict):
        return [Text(json_text(line.value))]
    return [Text.assemble((f"{name}=", "cyan"), _word(value)) for name, value in line.value.items()]


def _word(value: Any) -> str:
    """Plain words as they are; what has spaces, or is no text, as JSON."""
    plain = isinstance(value, str) and value and " " not in value and value.isprintable()
    return value if plain else printable(json_text(value))
