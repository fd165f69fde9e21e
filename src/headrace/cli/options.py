"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="JSON on stdout instead of a table.")]
AppName = Annotated[
    str | None, typer.Option("--app", help="App whose events type the data; default: the only one in headrace.toml.")
]
Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="Name of the topic.")]
