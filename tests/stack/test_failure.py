"""A part that cannot start says why: the disk, or its own last words."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.base.errors import PartFailed
from headrace.stack import stack
from headrace.stack.redis import Redis

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


def on_small_disk(size: str, *arguments: object) -> str:
    """Runs the script on a file system of that size, in a mount namespace that goes away with it."""
    unshare = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--map-root-user"]
    script = 'mount -t tmpfs -o size="$1" none "$2" || exit 77; shift; shift; exec "$@"'
    command = ["sh", "-c", script, "sh", size, str(arguments[0])]
    try:
        done = subprocess.run(
            [*unshare, *command, sys.executable, "-c", FILL_AND_START, *map(str, arguments)],
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        pytest.skip("NOT TESTED: a full disk (there is no `unshare` here to mount a small one)")
    if done.returncode == 77 or "unshare failed" in done.stderr or "Operation not permitted" in done.stderr:
        pytest.skip(f"NOT TESTED: a full disk (this system allows no mounts: {done.stderr.strip()})")
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("part", "size"),
    [("redis", "4k"), ("kafka", "24k"), ("postgres", "16m")],
)
def test_a_disk_that_fills_up_while_starting(tmp_path: Path, cache: Path, part: str, size: str) -> None:
    if part == "postgres" and os.geteuid() != 0:
        pytest.skip("NOT TESTED: initdb on a full disk (the namespace of a user has no other user to run it)")
    said = on_small_disk(size, tmp_path, cache, part, 0)
    assert said.startswith(f"disk-full | {part} could not start: the disk is full |")
    assert "free some space" in said
    assert "running" not in said


def test_a_disk_with_too_little_room_is_refused_before_anything_starts(tmp_path: Path, cache: Path) -> None:
    said = on_small_disk("16m", tmp_path, cache, "redis", stack.LEAST_DISK)
    assert said.startswith("disk-full | redis cannot be started: the disk is full |")
    assert str(tmp_path) in said


def test_other_last_words_are_passed_on(small: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare = Redis.prepare
    monkeypatch.setattr(Redis, "prepare", lambda self, run: [*prepare(self, run), "--no-such-setting", "1"])
    with pytest.raises(PartFailed, match=r"redis ended while starting \(exit code 1\)") as caught:
        stack.up(small, cache, parts=("redis",))
    assert "no-such-setting" in caught.value.why
    assert str(small / "redis" / "redis.log") in caught.value.fix
