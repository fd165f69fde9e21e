"""Documents: what a page claims its code prints is what it prints, and what it points at is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.page import ROOT, anchors, blocks, links, run

_NAMES = (
    "time.md",
    "windows.md",
    "joins.md",
    "tables.md",
    "patterns.md",
    "features.md",
    "policies.md",
    "testing.md",
    "stores.md",
    "bank.md",
    "feature-store.md",
    "serving.md",
)
RUN = [ROOT / "docs" / name for name in _NAMES]
RUN += sorted((ROOT / "docs" / "examples").glob("*.md"))
"""Pages whose code needs no JVM and no broker."""
ALL = sorted((ROOT / "docs").rglob("*.md"))


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", RUN, ids=_name)
def test_the_page_shows_what_its_code_prints(page: Path) -> None:
    text = page.read_text("utf-8")
    assert run(text, page) == text, f"to write the outputs anew: python -m tests.docs.page {_name(page)}"


@pytest.mark.parametrize("page", ALL, ids=_name)
def test_the_page_points_at_files_and_headings_that_are_there(page: Path) -> None:
    missing = []
    for target, anchor in links(page.read_text("utf-8")):
        file = page.parent / target if target else page
        if not file.exists() or (anchor and anchor not in anchors(file.read_text("utf-8"))):
            missing.append(f"{target}#{anchor}")
    assert missing == []


def test_a_page_that_claims_another_output_is_caught() -> None:
    honest = "# Sum\n\n```python\nprint(1 + 1)\n```\n\n```text\n2\n```\n\nDone.\n"
    assert run(honest, Path("page.md")) == honest
    assert run(honest.replace("2\n", "3\n"), Path("page.md")) == honest
    assert run("```python\nprint(2)\n```\n", Path("page.md")) == "```python\nprint(2)\n```\n\n```text\n2\n```\n"


def test_blocks_share_a_page_and_know_their_lines() -> None:
    text = "One.\n```python\nx = 1\n```\nTwo.\n```python\nprint(x)\n```\n\n```text\n1\n```\n"
    assert [(block.line, block.output) for block in blocks(text)] == [(3, ""), (7, "1\n")]
    assert run(text, Path("page.md")) == text
