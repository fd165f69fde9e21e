"""Errors: one tree, a code each, documented, and pointing at the user's own line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from headrace.base import errors
from headrace.base.errors import HeadraceError, TopicMissing
from headrace.base.where import here

ROOT = Path(__file__).parents[2]


def tree(kind: type[HeadraceError] = HeadraceError) -> list[type[HeadraceError]]:
    return [kind] + [leaf for child in kind.__subclasses__() for leaf in tree(child)]


def test_codes_are_unique() -> None:
    codes = [kind.code for kind in tree() if kind.__module__ == errors.__name__]
    assert len(codes) == len(set(codes))


def test_every_error_stands_in_the_drawn_tree() -> None:
    drawn = errors.__doc__ or ""
    assert [kind.__name__ for kind in tree() if kind.__module__ == errors.__name__ and kind.__name__ not in drawn] == []


def test_every_code_is_documented() -> None:
    page = (ROOT / "docs" / "errors.md").read_text()
    assert [k.code for k in tree() if k.__module__ == errors.__name__ and f"`{k.code}`" not in page] == []


def test_an_error_says_what_where_why_and_fix() -> None:
    text = str(TopicMissing("topic 'paymnts' does not exist", why="no broker knows it", fix="payments?", where=here()))
    assert text.splitlines()[0] == "topic 'paymnts' does not exist [topic-missing]"
    assert "test_errors.py:" in text
    assert "TopicMissing(" in text  # the line itself
    assert text.splitlines()[-2:] == ["  why:   no broker knows it", "  fix:   payments?"]


def test_an_old_python_is_told_so() -> None:
    check = ROOT / "tools" / "need_python.py"
    code = f"import runpy; m = runpy.run_path({str(check)!r}); print(m['complaint']((3, 9, 2)) or 'fine')"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "Python 3.9 is too old [python-too-old]" in said
    assert "fix:" in said
    assert subprocess.run([sys.executable, str(check)], check=False).returncode == 0
