"""The command `headrace`: its verbs, the settings they share, and how an error leaves it."""

from __future__ import annotations

import signal
import sys
from copy import copy
from pathlib import Path
from typing import Annotated

import typer
from typer.models import TyperInfo

from headrace.base.errors import BadSetting, HeadraceError, UsageError
from headrace.base.settings import Settings, load
from headrace.cli import (
    chaos,
    checkpoint,
    dead,
    doctor,
    features,
    groups,
    policy,
    query,
    rebuild,
    records,
    reviews,
    serve,
    stack,
    topics,
)
from headrace.cli import run as apps
from headrace.cli.terminal import json_text, talk

EXIT_INTERRUPTED = 130

app = typer.Typer(
    name="headrace",
    help="Stream processing in Python on Apache Spark. Reading verbs take --json; stdout is data, stderr is talk.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # plain help: half the start-up time, and the same on every terminal
    pretty_exceptions_enable=False,
)


@app.callback()
def root(
    ctx: typer.Context,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting for this call; `headrace config` lists them."),
    ] = None,
    tied: Annotated[bool, typer.Option("--tied", help="End, as by Ctrl-C, when the pipe at stdin does.")] = False,
) -> None:
    if tied:
        from headrace.ops.tied import tie

        tie()
    ctx.obj = load(dict(map(_assignment, set_ or ())))
    _keep_log(ctx, ctx.obj.home)


for part in (
    stack,
    apps,
    serve,
    reviews,
    rebuild,
    query,
    features,
    policy,
    doctor,
    topics,
    records,
    groups,
    dead,
    checkpoint,
    chaos,
):
    part.register(app)


def _assignment(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign:
        raise BadSetting(f"--set {text} gives no value", fix="write --set NAME=VALUE")
    return name.strip(), value


def _keep_log(ctx: typer.Context, home: Path) -> None:
    """What libraries say for experts (the broker's client says much) goes to a file, made when there is something."""
    import logging
    from logging.handlers import RotatingFileHandler

    if not home.is_dir():
        return
    (home / "logs").mkdir(exist_ok=True)
    keep = RotatingFileHandler(home / "logs" / "headrace.log", maxBytes=1_000_000, backupCount=1, delay=True)
    keep.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    logger = logging.getLogger("headrace")
    logger.addHandler(keep)
    ctx.call_on_close(lambda: logger.removeHandler(keep))
    ctx.call_on_close(keep.close)


def run(arguments: list[str]) -> int:
    """Runs one command and returns its exit code: 0 ok, 1 failed, 2 usage, 3 environment, 130 interrupted."""
    try:
        return int(_asked(arguments)(arguments, prog_name="headrace", standalone_mode=False) or 0)
    except HeadraceError as error:
        return _say(error, arguments)
    except typer.TyperException as error:
        return _say(UsageError(error.format_message(), fix="see --help"), arguments)
    except (KeyboardInterrupt, typer.Abort):
        return EXIT_INTERRUPTED
    except SystemExit:  # Typer's answer to a closed pipe: `headrace tail | head` has had enough, which is no failure
        return 0
    except Exception as unexpected:
        return _say_unexpected(unexpected, arguments)


def _asked(arguments: list[str]) -> typer.Typer:
    """The app; of groups that are not named only name and help. What help costs is a tenth less so."""
    asked = copy(app)
    asked.registered_groups = [one if one.name in arguments else _closed(one) for one in app.registered_groups]
    return asked


def _closed(group: TyperInfo) -> TyperInfo:
    assert group.typer_instance is not None
    return TyperInfo(typer.Typer(help=group.typer_instance.info.help, rich_markup_mode=None), name=group.name)


def _say(error: HeadraceError, arguments: list[str]) -> int:
    talk(json_text(error.as_dict()) if "--json" in arguments else str(error))
    return error.exit_code


def _say_unexpected(error: Exception, arguments: list[str]) -> int:
    """A fault of ours: short at the terminal, whole in a file."""
    import re
    import traceback
    from datetime import UTC, datetime

    typed = " ".join(re.sub(r"=.*", "=...", word) for word in arguments)  # values may be secrets, or people's data
    trace = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} headrace {typed}\n{traceback.format_exc()}\n"
    try:
        file = _home() / "logs" / "headrace.log"
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a") as log:
            log.write(trace)
        place = f"the whole of it is in {file}"
    except OSError:
        place = trace
    broken = HeadraceError(
        f"something went wrong inside Headrace: {type(error).__name__}: {error}",
        why=place,
        fix="`headrace doctor` may know; else please report it with that text",
    )
    return _say(broken, arguments)


def _home() -> Path:
    try:
        settings: Settings = load()
        return settings.home
    except HeadraceError:
        return Path(".headrace")


def main() -> None:
    # A service manager ends us with SIGTERM, a script's background job has SIGINT ignored: both mean Ctrl-C.
    for signum in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signum, signal.default_int_handler)
    sys.exit(run(sys.argv[1:]))
