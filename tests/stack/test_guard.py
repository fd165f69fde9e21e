"""A part is known again by pid and birth; a foreground run leaves nothing behind, whatever ends it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.stack import guard, stack
from tests.stack.waiting import until

RUN = """
import os, sys
from pathlib import Path
from headrace.stack import stack
stack.up(Path(sys.argv[1]), Path(sys.argv[2]), parts=sys.argv[3].split(","), foreground=True)
if sys.argv[4:] == ["fork"] and os.fork() == 0:
    os.close(1)
    os.read(0, 1)
    os._exit(0)
print("up", flush=True)
sys.stdin.read()
"""


class Foreground:
    """A run in a Python process of its own; leaving the block ends it if it still lives."""

    def __init__(self, *arguments: object) -> None:
        command = [sys.executable, "-c", RUN, *map(str, arguments)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> subprocess.Popen[str]:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "up\n"
        return self.process

    def __exit__(self, *_: object) -> None:
        self.process.communicate()


def alive(home: Path) -> list[str]:
    return [name for name, note in guard.notes(home).items() if note.alive]


def test_kill_of_a_foreground_run_leaves_nothing_behind(home: Path, cache: Path) -> None:
    stack.down(home)
    with Foreground(home, cache, "kafka,postgres,redis") as run:
        assert alive(home) == ["kafka", "postgres", "redis"]
        run.kill()
    until(lambda: alive(home) == [])


def test_a_child_that_the_run_forked_does_not_keep_the_parts(small: Path, cache: Path) -> None:
    with Foreground(small, cache, "redis", "fork") as run:
        run.kill()
        until(lambda: alive(small) == [])


def test_a_foreground_run_that_ends_by_itself_leaves_nothing_behind(small: Path, cache: Path) -> None:
    with Foreground(small, cache, "redis"):
        assert alive(small) == ["redis"]
    until(lambda: alive(small) == [])


def test_a_run_killed_in_the_middle_of_starting_leaves_nothing_behind(stopped: Path, cache: Path) -> None:
    run = Foreground(stopped, cache, "postgres,redis").process
    until(lambda: alive(stopped) != [])
    run.kill()
    run.communicate()
    until(lambda: alive(stopped) == [])


def test_a_foreground_run_uses_a_stack_that_stays_and_does_not_end_it(stopped: Path, cache: Path) -> None:
    stack.up(stopped, cache, parts=("redis",))
    before = guard.notes(stopped)
    with Foreground(stopped, cache, "redis,postgres") as run:
        run.kill()
    until(lambda: alive(stopped) == ["redis"])
    assert guard.notes(stopped)["redis"] == before["redis"]


def test_a_guard_does_not_touch_a_stack_started_after_its_own_was_stopped(small: Path, cache: Path) -> None:
    with Foreground(small, cache, "redis"):
        stack.down(small)
        stack.up(small, cache, parts=("redis",))
    # the guard has ended when the run's last pipe is closed and its own parts are gone
    until(lambda: not guards_of(small))
    assert alive(small) == ["redis"]


def guards_of(home: Path) -> list[str]:
    import psutil

    commands = [process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"])]
    return [" ".join(command) for command in commands if "watch" in command and str(home) in command]


def test_a_recycled_pid_is_not_killed(small: Path, cache: Path) -> None:
    # given a note that names a living process which is not ours
    stack.up(small, cache, parts=("redis",))
    stack.down(small)
    stranger = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True)
    note = guard.Note(stranger.pid, "another birth", "", int(signal.SIGTERM))
    (small / "redis" / guard.NOTE).write_text(json.dumps(note._asdict()))
    # when the stack goes down and up
    assert stack.status(small)[2].state == "dead"
    assert stack.down(small) == []
    stack.up(small, cache, parts=("redis",))
    # then the stranger has not noticed
    assert stranger.poll() is None
    assert guard.notes(small)["redis"].pid != stranger.pid
    stranger.communicate(b"\n")


@pytest.mark.parametrize("text", ["", "{", "17", '{"pid": 1}'])
def test_a_note_that_cannot_be_read_is_no_note(tmp_path: Path, text: str) -> None:
    (tmp_path / "redis").mkdir()
    (tmp_path / "redis" / guard.NOTE).write_text(text)
    assert guard.notes(tmp_path) == {}


def test_what_ignores_the_polite_signal_is_killed() -> None:
    deaf = "import signal, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(); sys.stdin.read()"
    child = subprocess.Popen(
        [sys.executable, "-c", deaf], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    assert child.stdout is not None
    child.stdout.readline()
    guard.end([guard.Note(child.pid, guard.birth(child.pid) or "", "", int(signal.SIGTERM))], grace=0.2)
    child.communicate()
    assert child.returncode == -signal.SIGKILL


def test_birth_tells_the_living_from_the_dead() -> None:
    assert guard.birth(os.getpid()) == guard.birth(os.getpid()) is not None
    assert guard.birth(os.getpid()) != guard.birth(1)
    child = subprocess.Popen([sys.executable, "-c", ""])
    until(lambda: guard.birth(child.pid) is None)  # a zombie is dead
    child.wait()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux shows a zombie whose threads still run")
def test_a_process_lives_until_its_last_thread_is_gone() -> None:
    # given a process whose first thread has ended, as in a server that is being killed, while another still runs
    script = """
import ctypes, os, threading
threading.Thread(target=lambda: os._exit(len(os.read(0, 1)))).start()
ctypes.CDLL(None).pthread_exit(None)
"""
    child = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE)
    until(lambda: "State:\tZ" in Path(f"/proc/{child.pid}/status").read_text())
    assert guard.birth(child.pid) is not None
    child.communicate(b"x")
    assert guard.birth(child.pid) is None
