"""The bank's processes: waited for by what they say, and their last words told when they end."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import headrace as hr
from bank import jobs


def test_a_job_is_known_by_what_it_says_and_its_end_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE__HOME", str(tmp_path / "home"))
    job = jobs.Job("settings", ("config", "--json"), tmp_path / "settings.log")
    assert str(tmp_path / "home") in job.until(str(tmp_path / "home"))
    job.process.wait()
    with pytest.raises(hr.HeadraceError, match="settings has ended"):
        job.check()
    with pytest.raises(hr.HeadraceError, match="has ended"):
        job.until("what it never says")
    job.stop()  # twice is harmless


def test_a_job_that_was_killed_is_started_again_until_it_happens_too_often(tmp_path: Path) -> None:
    job = jobs.Job("explain", ("explain", "bank"), tmp_path / "explain.log", yields=True)
    assert not job.keep()
    for _ in range(jobs.OFTEN):
        first = job.process
        first.kill()
        first.wait()
        assert job.keep()
        assert job.process.pid != first.pid
        assert os.getpriority(os.PRIO_PROCESS, job.process.pid) > 0
    job.process.kill()
    job.process.wait()
    with pytest.raises(hr.HeadraceError, match="has ended"):
        job.keep()
