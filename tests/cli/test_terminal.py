"""The terminal: whole lines in a pipe, names unbroken on a narrow screen, colour only where a person looks."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from headrace.cli.terminal import json_text, render, show, text_of

COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def on_screen(columns: int, *arguments: str, **environment: str) -> str:
    """What a terminal of this width shows."""
    mine, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")}
    child = subprocess.Popen(
        [sys.executable, "-m", "headrace", *arguments],
        stdout=theirs,
        stderr=theirs,
        env=kept | {"TERM": "xterm"} | environment,
    )
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(mine, 4096):
            shown += piece
    except OSError:
        pass  # the other end is closed
    os.close(mine)
    assert child.wait() == 0
    return shown.decode().replace("\r\n", "\n")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_pipe_gets_whole_lines_without_colour() -> None:
    done = subprocess.run([sys.executable, "-m", "headrace", "config"], capture_output=True, text=True, check=True)
    assert "\x1b" not in done.stdout
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["setting", "value", "origin", "meaning"]
    assert [line for line in lines if line != line.rstrip()] == []
    assert any(line.endswith("at the first start; then `checkpoint rescale`") for line in lines)


def test_lines_of_several_threads_stay_whole() -> None:
    program = """
import sys, threading
from headrace.cli.terminal import data
sys.setswitchinterval(1e-6)
tell = lambda word: [data(word * 20) for _ in range(3000)]
threads = [threading.Thread(target=tell, args=(word,)) for word in "abcd"]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert set(done.stdout.split("\n")) == {*(word * 20 for word in "abcd"), ""}
    assert done.stdout.count("\n") == 12_000


@pytest.mark.parametrize("columns", [40, 70, 200])
def test_on_a_screen_no_name_is_ever_broken_or_cut(columns: int) -> None:
    shown = COLOUR.sub("", on_screen(columns, "config"))
    assert "spark.shuffle_partitions" in shown
    assert "…" not in shown
    words = re.sub(r"\s+", " ", shown)
    for word in ("rescale", "checkpoint", "kafka.key_password"):
        assert word in words


def test_colour_is_for_people_who_want_it() -> None:
    assert COLOUR.search(on_screen(80, "config"))
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", on_screen(80, "config", NO_COLOR="1"))


def test_numbers_stand_right_and_words_left() -> None:
    assert render([{"name": "a", "count": 5}, {"name": "bcd", "count": 1234}]) == (
        "name  count\na         5\nbcd   1,234"
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        ("", "-"),
        (True, "yes"),
        (1234567, "1,234,567"),
        (0.25, "0.2"),
        (timedelta(minutes=90), "1 h 30 min"),
        ("[bold]markup[/bold]", "[bold]markup[/bold]"),
        ("\x1b[31mred\x1b[0m\rover \u202e", r"\x1b[31mred\x1b[0m\rover \u202e"),
        ("zw\u00f6lf\nlines", "zw\u00f6lf\nlines"),
    ],
)
def test_values_read_as_people_write_them(value: object, text: str) -> None:
    assert text_of(value) == text


def test_markup_in_data_is_shown_not_obeyed() -> None:
    assert "[red]x[/red] :smile:" in render([{"value": "[red]x[/red] :smile:"}])


def test_json_has_seconds_and_instants(capsys: pytest.CaptureFixture[str]) -> None:
    show([{"took": timedelta(seconds=1.5), "at": datetime(2026, 11, 3, tzinfo=UTC)}], json=True)
    out = capsys.readouterr().out
    assert '"took": 1.5' in out
    assert '"at": "2026-11-03T00:00:00.000000Z"' in out
    assert json_text({"a": None}) == '{"a":null}'
