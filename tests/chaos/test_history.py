"""The history: what was called and committed, in the order of its time, here and in its file."""

from __future__ import annotations

import json
from pathlib import Path

from headrace.chaos.history import History


def test_what_is_not_known_to_have_worked_is_not_acknowledged(tmp_path: Path) -> None:
    history = History(tmp_path / "history.jsonl")
    history.sent(0, 10, "ok")
    history.sent(10, 20, "unknown")
    history.close()
    assert history.acknowledged == [range(10)]
    told = [json.loads(line) for line in (tmp_path / "history.jsonl").read_text().splitlines()]
    assert [(one["about"], one["outcome"]) for one in told] == [
        ("transfers 0 to 9", "ok"),
        ("transfers 10 to 19", "unknown"),
    ]


def test_the_first_commit_after_a_moment(tmp_path: Path) -> None:
    history = History(tmp_path / "history.jsonl")
    assert history.commit_after(0) is None
    history.committed("flow", 1)
    between = history.now
    history.committed("flow", 2)
    history.committed("flow", 3)
    assert [commit.batch for commit in history.commits] == [1, 2, 3]
    assert (found := history.commit_after(between)) is not None
    assert found.batch == 2
    assert history.commit_after(history.now) is None
    history.close()
