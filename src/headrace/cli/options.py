"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="JSON on stdout instead of a table.")]
AppName = Annotated[
    str | None, typer.Option("--app", help="App it is about; default: the one in headrace.toml that knows the topic.")
]
Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="Name of the topic.")]
