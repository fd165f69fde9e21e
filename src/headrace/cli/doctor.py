"""The command `doctor`: what is wrong, and how to fix it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.findings import row, say
from headrace.cli.options import Json
from headrace.cli.terminal import show, talk

if TYPE_CHECKING:
    from headrace.observe.finding import Finding

EXIT_ENVIRONMENT = 3


def register(app: typer.Typer) -> None:
    app.command("doctor")(doctor)


def doctor(
    ctx: typer.Context,
    spark: Annotated[bool, typer.Option(help="Run a small query through Spark too: some seconds.")] = True,
    json: Json = False,
) -> None:
    """Say what is wrong, and how to fix it. Exit code 3 if something does not work."""
    from headrace.ops.doctor import examine

    found: list[Finding] = []
    for finding in examine(ctx.obj, spark=spark):
        found.append(finding)
        if not json:
            say(finding)  # at once: the next check may take seconds
    if json:
        show([row(finding) for finding in found], json=True)
    errors = sum(finding.severity == "error" for finding in found)
    warnings = sum(finding.severity == "warning" for finding in found)
    if not json:
        talk(f"{errors} errors, {warnings} warnings" if errors or warnings else "all is well")
    if errors:
        raise typer.Exit(EXIT_ENVIRONMENT)
