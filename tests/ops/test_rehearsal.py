"""The rehearsal: its apps can run as they are meant to; what goes wrong is told in a line.

That all of it runs, `make setup` shows; tests/spark/test_archive.py finds what it left.
"""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import timedelta
from itertools import islice
from pathlib import Path

import psutil
import pytest

import headrace as hr
from headrace.base.settings import Settings
from headrace.ops import rehearsal
from headrace.plan import modes
from headrace.plan.plan import build
from tests.stack.waiting import until


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


def test_what_goes_wrong_is_told_in_a_line(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_JAVA", "neither")

    told = rehearsal.rehearse(settings, tmp_path / "learned")

    assert told == "HEADRACE_JAVA = 'neither': it says whose Java goes first"


def of(folder: Path) -> list[psutil.Process]:
    """Processes that were told of a place in this folder."""
    return [one for one in psutil.process_iter(["cmdline"]) if str(folder) in " ".join(one.info["cmdline"] or [])]


def test_it_ends_with_whoever_asked_for_it(settings: Settings, tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from headrace.base.settings import load; "
        "from headrace.ops.rehearsal import rehearse; "
        "rehearse(load({'cache': sys.argv[1]}, env={}), Path(sys.argv[2]))"
    )
    words = [sys.executable, "-c", script, str(settings.cache), str(tmp_path / "learned")]
    asks = subprocess.Popen(words, cwd=tmp_path, env=os.environ | {"TMPDIR": str(tmp_path)})
    until(lambda: len([one for one in of(tmp_path) if one.name() == "java"]) == 2, 60)  # a driver and a broker
    working = of(tmp_path)

    asks.kill()

    asks.wait()
    assert psutil.wait_procs(working, timeout=60)[1] == []
    assert of(tmp_path) == []
