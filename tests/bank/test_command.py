"""The command `bank`: its help, its errors and their exit codes, and how a checkout gets it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import headrace as hr
from tests.bank.saying import Said

ROOT = Path(__file__).parents[2]


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory where no stack runs."""
    monkeypatch.setenv("HEADRACE__HOME", str(tmp_path / "home"))
    return tmp_path


@pytest.mark.parametrize(
    "verb", [[], ["run"], ["train"], ["compare"], ["replay-decision"], ["rules"], ["rules", "test"]], ids=" ".join
)
def test_every_verb_explains_itself(verb: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    said = Said(capsys, *verb, "--help")
    assert (said.code, said.err) == (0, "")
    assert said.out.startswith(f"Usage: {' '.join(['bank', *verb])} ")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nonsense"], "No such command 'nonsense'"),
        (["run", "--rate", "fast"], "Invalid value for '--rate'"),
        (["train"], "Missing argument"),
        (["replay-decision"], "Missing argument"),
        (["rules", "test"], "Missing argument"),
        (["rules", "test", "rules.toml", "--from", "never"], "Invalid value for '--from'"),
        (["compare", "--what"], "No such option: --what"),
    ],
)
def test_what_makes_no_sense_exits_with_2(words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = Said(capsys, *words)
    assert (said.code, said.out) == (2, "")
    assert says in said.err


@pytest.mark.parametrize(
    ("when", "code", "marked"),
    [
        ("amount > and", "[expression-refused]", "  in:    amount > and\n                  ^^^\n"),
        ("amont > 10", "[unknown-column]", "  in:    amont > 10\n         ^^^^^\n"),
    ],
)
def test_a_rule_that_is_wrong_is_marked_before_anybody_connects(
    when: str, code: str, marked: str, nowhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = nowhere / "rules.toml"
    file.write_text(f'[[rule]]\nname = "large"\nwhen = "{when}"\naction = "decline"\n')
    said = Said(capsys, "rules", "test", str(file))
    assert (said.code, said.out) == (2, "")
    assert code in said.err.splitlines()[0]
    assert f"{file}:1" in said.err
    assert marked in said.err


def test_a_file_of_rules_that_is_not_there_is_named(nowhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = Said(capsys, "rules", "test", str(nowhere / "none.toml"))
    assert (said.code, said.out) == (2, "")
    assert f"{nowhere / 'none.toml'} cannot be read as rules [bad-policy]" in said.err


@pytest.mark.parametrize(
    "words",
    [["rules", "test", str(ROOT / "bank" / "rules.toml")], ["replay-decision", "p-1"], ["train", "m.txt", "--lake"]],
    ids=lambda words: words[0],
)
def test_without_a_stack_the_environment_is_at_fault(
    words: list[str], nowhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = Said(capsys, *words)
    assert (said.code, said.out) == (3, "")
    assert said.err.startswith("no kafka is running [stack-down]")
    assert "start it with `headrace up`" in said.err


def test_it_runs_as_a_module_too() -> None:
    ran = subprocess.run([sys.executable, "-m", "bank", "--help"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "replay-decision" in ran.stdout


def test_a_checkout_installs_it_beside_headrace(tmp_path: Path) -> None:
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
    install += ["--ignore-installed", "--prefix", str(tmp_path)]  # else pip takes the one that is here away
    checks = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_ROOT_USER_ACTION": "ignore"}
    subprocess.run([*install, "-e", ROOT / "bank"], env=os.environ | checks, check=True)

    (site,) = tmp_path.glob("lib/*/site-packages")
    # what Python does at its start with a site directory, and then the script that was installed
    script = "import runpy, site, sys; site.addsitedir(sys.argv.pop(1)); "
    script += "runpy.run_path(sys.argv.pop(1), run_name='__main__')"
    ran = subprocess.run(
        [sys.executable, "-c", script, site, tmp_path / "bin" / "bank", "--help"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(Path(hr.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "replay-decision" in ran.stdout
