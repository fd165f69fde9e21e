"""A slice of the harness: a dozen faults on real parts, two of them end a driver; nothing is lost or doubled."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.base.settings import Settings
from headrace.chaos.run import run

FAULTS = (
    "kill-worker",
    "cut",
    "poison",
    "fail-after-postgres",
    "future",
    "kill-redis",
    "lose-answer",
    "kill-postgres",
    "hot-key",
    "kill-broker",
    "full-disk",
    "lose-answer-and-die",
    "die-before-rows",
)


@pytest.mark.timeout(1200)  # three drivers start, maybe on a busy machine
def test_nothing_is_lost_or_doubled_whatever_is_killed(settings: Settings, tmp_path: Path) -> None:
    said: list[str] = []
    verdict = run(
        settings, seed=7, faults=len(FAULTS), wanted=FAULTS, minutes=30, rate=100, home=tmp_path, tell=said.append
    )
    assert verdict.sound, "\n".join([*said, *map(str, verdict.checks)])
    assert [one["count"] for one in verdict.faults] == [1] * len(FAULTS)
    assert [remark for remark in verdict.remarks if "SKIPPED" not in remark] == []  # no driver ended by itself
    assert verdict.transfers > 5_000
