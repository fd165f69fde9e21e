"""The bank's processes: waited for by what they say, and their last words told when they end."""

from __future__ import annotations

from pathlib import Path

import pytest

import headrace as hr
from bank import jobs


def test_a_job_is_known_by_what_it_says_and_its_end_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE__HOME", str(tmp_path / "home"))
    job = jobs.start("settings", ("config", "--json"), tmp_path)
    assert str(tmp_path / "home") in job.until(str(tmp_path / "home"))
    job.process.wait()
    with pytest.raises(hr.HeadraceError, match="settings has ended"):
        job.check()
    with pytest.raises(hr.HeadraceError, match="has ended"):
        job.until("what it never says")
    job.stop()  # twice is harmless
