"""The rehearsal: its apps can run as they are meant to; what goes wrong is told in a line.

That all of it runs, `make setup` shows; tests/spark/test_archive.py finds what it left.
"""

from __future__ import annotations

from datetime import timedelta
from itertools import islice
from pathlib import Path

import pytest

import headrace as hr
from headrace.base.settings import load
from headrace.ops import rehearsal
from headrace.plan import modes
from headrace.plan.plan import build


@pytest.mark.parametrize(("app", "act"), [(rehearsal.swift(), rehearsal.SWIFT), (rehearsal.steady(), rehearsal.STEADY)])
def test_its_apps_run_in_their_modes(app: hr.App, act: rehearsal.Act) -> None:
    for flow in build(app).flows:
        modes.check(flow, act.mode)
    assert act.out in {topic.name for topic in app.topics}


def test_what_only_frauds_set_to_work_is_at_work_too() -> None:
    """Code that is first used by the first fraud would be compiled, or thrown away, while payments wait."""
    with hr.testing.run(rehearsal.swift(), realtime=True) as t:
        t.policy("rules", rehearsal.RULES)
        t.send(*islice(rehearsal._payments(t.now - timedelta(days=1)), 6_000))
        decided = t.read("decided")
    assert {row["decision"] for row in decided} == {"allow", "review", "decline"}
    assert any(row["acts_7d"] for row in decided)


def test_what_goes_wrong_is_told_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where a folder should be")
    settings = load({"home": str(tmp_path / "home"), "cache": str(tmp_path / "cache")}, env={})

    told = rehearsal.rehearse(settings, tmp_path / "learned")

    assert told
    assert "\n" not in told
    assert not (tmp_path / "learned").exists()
