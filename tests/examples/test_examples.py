"""The small apps: each runs by itself, declares what its page declares, and prints what its page shows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from headrace.base.settings import load
from headrace.ops.apps import find
from headrace.plan.plan import build
from tests.docs.page import ROOT, blocks

APPS = sorted((ROOT / "examples").glob("*.py"))


def _name(app: Path) -> str:
    return app.name


def _page(app: Path) -> Path:
    return ROOT / "docs" / "examples" / f"{app.stem.replace('_', '-')}.md"


def test_the_index_has_them_all() -> None:
    index = (ROOT / "docs" / "examples" / "README.md").read_text("utf-8")
    assert [
        app.name
        for app in APPS
        if f"({app.relative_to(ROOT / 'examples')})" not in index.replace("../../examples/", "")
    ] == []


@pytest.mark.parametrize("app", APPS, ids=_name)
def test_it_declares_what_its_page_declares(app: Path) -> None:
    declaration = blocks(_page(app).read_text("utf-8"))[0].code
    assert declaration in app.read_text("utf-8")


@pytest.mark.parametrize("app", APPS, ids=_name)
def test_it_prints_the_table_that_its_page_shows(app: Path) -> None:
    ran = subprocess.run([sys.executable, "-W", "error", str(app)], capture_output=True, text=True, timeout=60)
    assert ran.stderr == ""
    assert ran.stdout == blocks(_page(app).read_text("utf-8"))[-1].output


@pytest.mark.parametrize("app", APPS, ids=_name)
def test_the_command_line_finds_one_app_with_outputs_in_it(app: Path) -> None:
    found = find(f"examples/{app.name}", load(root=ROOT, env={}))
    assert build(found).flows


@pytest.mark.parametrize("app", APPS, ids=_name)
def test_it_is_small(app: Path) -> None:
    assert len(app.read_text("utf-8").splitlines()) < 150
