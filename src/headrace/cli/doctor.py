"""The command `doctor`: what is wrong, and how to fix it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.options import Json
from headrace.cli.terminal import STYLES, Row, console, show, talk

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
            _print(finding)  # at once: the next check may take seconds
    if json:
        show([_row(finding) for finding in found], json=True)
    errors = sum(finding.severity == "error" for finding in found)
    warnings = sum(finding.severity == "warning" for finding in found)
    if not json:
        talk(f"{errors} errors, {warnings} warnings" if errors or warnings else "all is well")
    if errors:
        raise typer.Exit(EXIT_ENVIRONMENT)


def _row(finding: Finding) -> Row:
    return {
        "check": finding.check,
        "severity": finding.severity,
        "what": finding.what,
        "why": finding.why,
        "fix": finding.fix,
    }


def _print(finding: Finding) -> None:
    from rich.padding import Padding
    from rich.text import Text

    out = console()
    head = (f"{finding.severity:<8}", STYLES[finding.severity])
    out.print(Text.assemble(head, (f"{finding.check:<8}", "dim"), finding.what), soft_wrap=True)
    for name, text in (("why", finding.why), ("fix", finding.fix)):
        if text:
            out.print(Padding(Text(f"{name}: {text}"), (0, 0, 0, 16), expand=False))
