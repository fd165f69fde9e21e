"""Documents whose code talks to a broker: they run against the one stack of the test run."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.base.settings import Settings
from headrace.log import groups, topics
from headrace.log.broker import Broker
from tests.docs.page import ROOT, run

PAGES = {"docs/log.md": ("coffees", "cafes"), "README.md": ("visits", "visit-counts")}
"""Each page, and the topics it takes to be empty."""


@pytest.mark.parametrize("page", PAGES)
def test_the_page_shows_what_its_code_prints(
    page: str, broker: Broker, settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEADRACE__HOME", str(settings.home))
    assert [name for name in PAGES[page] if name in topics.widths(broker)] == []
    text = (ROOT / page).read_text("utf-8")
    try:
        assert run(text, ROOT / page) == text
    finally:
        for name in topics.widths(broker):
            if name.removesuffix(".dead") in PAGES[page]:
                topics.delete(broker, name)
        for group in groups.listing(broker):
            if group.name in ("till", "report", "kitchen", "readme"):
                groups.delete(broker, group.name)
