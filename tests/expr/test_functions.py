"""The table of functions: what the documents say of it is what it is."""

from __future__ import annotations

from pathlib import Path

from headrace.expr.functions import FUNCTIONS
from tests.docs.page import run

PAGE = Path(__file__).parents[2] / "docs" / "expressions.md"


def table() -> str:
    """The table of docs/expressions.md; print it to renew the page."""
    lines = ["| write | meaning | may not fit |", "|---|---|---|"]
    for function in FUNCTIONS.values():
        says = function.says + ("; engines agree within 1e-9" if function.approximate else "")
        unfit = "yes" if function.fails.__name__ != "never" else ""
        lines.append(f"| `{function.usage.replace('|', chr(92) + '|')}` | {says} | {unfit} |")
    return "\n".join(lines)


def test_the_page_shows_what_its_code_prints() -> None:
    text = PAGE.read_text("utf-8")
    assert run(text, PAGE) == text, "to write the outputs anew: python -m tests.docs.page docs/expressions.md"


def test_the_documents_hold_the_table() -> None:
    assert table() in PAGE.read_text("utf-8")
