"""Findings as a person reads them, and as a machine does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.cli.terminal import STYLES, Row, console

if TYPE_CHECKING:
    from headrace.observe.finding import Finding


def row(finding: Finding) -> Row:
    return {
        "check": finding.check,
        "severity": finding.severity,
        "what": finding.what,
        "where": finding.where,
        "why": finding.why,
        "fix": finding.fix,
    }


def say(finding: Finding) -> None:
    from rich.padding import Padding
    from rich.text import Text

    out = console()
    head = (f"{finding.severity:<8}", STYLES[finding.severity])
    out.print(Text.assemble(head, (f"{finding.check + ' ':<8}", "dim"), finding.what), soft_wrap=True)
    for name, text in (("where", finding.where), ("why", finding.why), ("fix", finding.fix)):
        if text:
            out.print(Padding(Text(f"{name}: {text}"), (0, 0, 0, 16), expand=False))
