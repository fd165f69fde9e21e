"""Commands about the stack: up, down, status, fetch, config, and the demo."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.base.errors import UsageError
from headrace.base.settings import Settings
from headrace.cli.options import AppName, Json
from headrace.cli.terminal import Row, console, data, progress, show, show_one, talk

if TYPE_CHECKING:
    from headrace.observe.part import PartView

NEXT = (
    ("tail {topic} --follow", "watch them come in"),
    ("topics", "what is on the log"),
    ("explain {app}", "what the app makes of it; `run` does it"),
    ("doctor", "is everything well?"),
)
"""What to type while the demo runs."""


def register(app: typer.Typer) -> None:
    app.command("up")(up)
    app.command("down")(down)
    app.command("status")(status)
    app.command("demo")(demo)
    app.command("fetch")(fetch)
    app.command("config")(config)


def up(
    ctx: typer.Context,
    brokers: Annotated[int | None, typer.Option(help="Brokers of the embedded Kafka: 1, or 3 (replicated).")] = None,
    connect: Annotated[bool, typer.Option("--connect", help="Start Kafka Connect too.")] = False,
    json: Json = False,
) -> None:
    """Start the embedded stack, or check your own. Twice is harmless."""
    from headrace.ops import stack, topics

    with progress("jars") as move:
        parts = stack.up(ctx.obj, brokers=brokers, connect=connect, tell=talk, progress=move)
    made = topics.make(ctx.obj, tell=talk)
    if made:
        talk(f"made the topics {', '.join(made)}")
    show(_rows(parts, json), json=json)


def down(
    ctx: typer.Context,
    quiet: Annotated[bool, typer.Option("--quiet", help="Say nothing.")] = False,
    json: Json = False,
) -> None:
    """Stop the embedded stack; its data stays."""
    from headrace.ops import stack

    stopped = stack.down(ctx.obj, tell=(lambda _: None) if quiet or json else talk)
    if json:
        show_one({"stopped": stopped}, json=True)
    elif not quiet:
        talk(f"stopped {', '.join(stopped)}" if stopped else "nothing was running")


def status(ctx: typer.Context, json: Json = False) -> None:
    """Show every part: where it is, whether it answers."""
    from headrace.ops import stack

    show(_rows(stack.status(ctx.obj), json), json=json)


def _rows(parts: Iterable[PartView], json: bool) -> list[Row]:
    rows: list[Row] = []
    for part in parts:
        row: Row = {
            "part": part.name,
            "state": part.state,
            "address": part.address or None,
            "kind": part.kind,
            "memory_mb": part.memory_mb,
            "uptime": part.uptime and timedelta(seconds=round(part.uptime.total_seconds())),
        }
        if json:
            row |= {"pid": part.pid, "log": str(part.log) if part.log else None, "trouble": part.trouble}
        rows.append(row)
    return rows


def fetch(
    ctx: typer.Context,
    connect: Annotated[bool, typer.Option("--connect", help="The jars of Kafka Connect and Debezium too.")] = False,
    rehearsal: Annotated[bool, typer.Option(help="Let Java learn from a run what will be busy, two minutes.")] = True,
) -> None:
    """Download jars, compile kernels and rehearse, once per user."""
    from headrace.ops.fetch import fetch as get

    with progress("jars") as move:
        found = get(ctx.obj, connect=connect, rehearsal=rehearsal, tell=talk, progress=move)
    size = sum(file.stat().st_size for file in found) / 1e6
    talk(f"{len(found)} jars are in place and verified ({size:.0f} MB)")


def config(ctx: typer.Context, json: Json = False) -> None:
    """Show every setting, its value and its origin. Secrets are masked."""
    settings: Settings = ctx.obj
    rows: list[Row] = [
        {"setting": name, "value": value.shown, "origin": value.origin, "meaning": value.setting.meaning}
        for name, value in settings.values.items()
    ]
    rows += [{"setting": f"apps.{name}", "value": target, "origin": "headrace.toml", "meaning": "an app"}
             for name, target in settings.apps.items()]  # fmt: skip
    show(rows, json=json)


def demo(
    ctx: typer.Context,
    app: AppName = None,
    rate: Annotated[float, typer.Option(help="Events a second.")] = 3.0,
) -> None:
    """Stack and a little made-up traffic until Ctrl-C."""
    from headrace.ops import demo as running
    from headrace.ops.fetch import fetch as get

    if rate <= 0:
        raise UsageError(f"{rate} events a second are none", fix="--rate 3")
    try:
        with progress("jars") as move:
            get(ctx.obj, rehearsal=False, tell=talk, progress=move)  # no Spark is started here
            opened = running.demo(ctx.obj, app, tell=talk, progress=move)
        with opened as shown:
            show(_rows(shown.parts, False), json=False)
            topic = shown.app.events[0].topic
            data(f"\ndata and logs: {ctx.obj.home}")
            data(f"app {shown.app.name}: about {rate:g} made-up events a second go to the topic {topic}\n")
            talk(_next(shown.app.name, topic))
            _traffic(shown.send(rate))
    except KeyboardInterrupt:
        talk("stopped; `headrace demo` goes on where this left off")


def _next(app: str, topic: str) -> str:
    import os
    import shutil
    import sys

    command = "headrace" if shutil.which("headrace") else os.path.relpath(sys.argv[0])
    lines = [(f"  {command} {verb.format(app=app, topic=topic)}", why) for verb, why in NEXT]
    width = max(len(line) for line, _ in lines)
    return "\n".join(
        [
            "Try, in another terminal:",
            *(f"{line:<{width}}   {why}" for line, why in lines),
            "Ctrl-C here stops all of it; the data stays for the next time.",
        ]
    )


def _traffic(sent: Iterable[int]) -> None:
    """A count that moves on a terminal; in a log file it would only be noise."""
    out: Any = console(stderr=True)
    if not out.is_terminal:
        for _ in sent:
            pass
        return
    with out.status("sending") as line:
        for count in sent:
            line.update(f"{count:,} sent")
