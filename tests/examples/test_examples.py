"""The small apps: each runs by itself, declares what its page declares, and prints what its page shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.base.settings import Settings, load
from headrace.log.broker import Broker
from headrace.ops.apps import find
from headrace.plan.plan import build
from tests.docs.page import ROOT, blocks

APPS = sorted((ROOT / "examples").glob("*.py"))
GUARANTEES = ROOT / "examples" / "guarantees.py"
"""The one that kills drivers, and so needs a broker."""


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


@pytest.mark.parametrize("app", [app for app in APPS if app != GUARANTEES], ids=_name)
def test_it_prints_the_table_that_its_page_shows(app: Path) -> None:
    ran = subprocess.run([sys.executable, "-W", "error", str(app)], capture_output=True, text=True, timeout=60)
    assert ran.stderr == ""
    assert ran.stdout == blocks(_page(app).read_text("utf-8"))[-1].output


@pytest.mark.timeout(600)  # two drivers start from nothing, maybe on a busy machine
def test_a_kill_loses_repeats_or_does_neither_as_the_page_shows(settings: Settings, broker: Broker) -> None:
    on_our_broker = os.environ | {
        "HEADRACE__KAFKA__BOOTSTRAP": broker.bootstrap,
        "HEADRACE__SPARK__DRIVER_MEMORY": "1g",
        "HEADRACE__CACHE": str(settings.cache),
        "PYTHONWARNINGS": "error",
    }
    ran = subprocess.run(
        [sys.executable, str(GUARANTEES)], capture_output=True, text=True, timeout=560, env=on_our_broker
    )
    assert ran.stderr == ""
    assert ran.stdout in re.findall(
        r"^```text\n(.*?)^```", _page(GUARANTEES).read_text("utf-8"), re.DOTALL | re.MULTILINE
    )


@pytest.mark.parametrize("app", APPS, ids=_name)
def test_the_command_line_finds_one_app_with_outputs_in_it(app: Path) -> None:
    found = find(f"examples/{app.name}", load(root=ROOT, env={}))
    assert build(found).flows


@pytest.mark.parametrize("app", APPS, ids=_name)
def test_it_is_small(app: Path) -> None:
    assert len(app.read_text("utf-8").splitlines()) < 150
