"""A part that cannot start says why: the disk, or its own last words."""

import os
from pathlib import Path

import pytest

from headrace.base.errors import PartFailed
from headrace.stack import stack
from headrace.stack.redis import Redis
from tests.small_disk import on_small_disk

FILL_AND_START = """
import sys
from pathlib import Path
from headrace.base.errors import HeadraceError
from headrace.stack import stack
home, cache, part, least = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
stack.LEAST_DISK = least
try:
    stack.up(home, cache, parts=(part,))
except HeadraceError as error:
    print(error.code, "|", error.what, "|", error.why, "|", error.fix, "|", [p.state for p in stack.status(home)])
else:
    stack.down(home)
"""


@pytest.mark.parametrize(
    ("part", "size"),
    [("redis", "4k"), ("kafka", "24k"), ("postgres", "16m")],
)
def test_a_disk_that_fills_up_while_starting(tmp_path: Path, cache: Path, part: str, size: str) -> None:
    if part == "postgres" and os.geteuid() != 0:
        pytest.skip("NOT TESTED: initdb on a full disk (the namespace of a user has no other user to run it)")
    said = on_small_disk(size, tmp_path, FILL_AND_START, cache, part, 0)
    assert said.startswith(f"disk-full | {part} could not start: the disk is full |")
    assert "free some space" in said
    assert "running" not in said


def test_a_disk_with_too_little_room_is_refused_before_anything_starts(tmp_path: Path, cache: Path) -> None:
    said = on_small_disk("16m", tmp_path, FILL_AND_START, cache, "redis", stack.LEAST_DISK)
    assert said.startswith("disk-full | redis cannot be started: the disk is full |")
    assert str(tmp_path) in said


def test_other_last_words_are_passed_on(small: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare = Redis.prepare
    monkeypatch.setattr(Redis, "prepare", lambda self, run: [*prepare(self, run), "--no-such-setting", "1"])
    with pytest.raises(PartFailed, match=r"redis ended while starting \(exit code 1\)") as caught:
        stack.up(small, cache, parts=("redis",))
    assert "no-such-setting" in caught.value.why
    assert str(small / "redis" / "redis.log") in caught.value.fix
