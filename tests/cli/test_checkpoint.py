"""checkpoint show, verify, repair and rescale as a person types them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from headrace.spark.checkpoint import Checkpoint
from tests.cli.conftest import Headrace
from tests.spark.keeping import BATCHES, Kept, tear


@pytest.fixture
def home(kept: Kept, tmp_path: Path) -> Path:
    """A home with a copy of the checkpoint, at its place."""
    app, version, flow = kept.folder.parts[-3:]
    shutil.copytree(kept.folder, tmp_path / "home" / "state" / app / version / flow)
    return tmp_path / "home"


def flow_folder(home: Path) -> Path:
    (folder,) = (home / "state").glob("*/*/*")
    return folder


def test_show_says_how_far_a_flow_came(headrace: Headrace, kept: Kept, home: Path) -> None:
    called = (
        "--set",
        f"home={home}",
        "--set",
        f"kafka.bootstrap={kept.flowing.broker.bootstrap}",
        "checkpoint",
        "show",
    )
    (flow,) = headrace(*called, "--json").json

    assert (flow["app"], flow["flow"], flow["driver"]) == (kept.app.name, kept.flowing.flow.name, None)
    assert flow["planned"] == flow["committed"] >= BATCHES
    assert flow["reached"][0]["offset"] == 100 * BATCHES
    assert flow["reached"][0]["records_behind"] >= 0
    assert (flow["state"][0]["partitions"], flow["state"][0]["version"]) == (2, flow["committed"] + 1)
    assert flow["keys"]["window-1"] == 40

    said = headrace(*called)
    assert said.code == 0
    assert f"{kept.flowing.flow.name} ({kept.app.name} v1)" in said.out
    assert "none runs" in said.out


def test_a_flow_that_runs_is_not_looked_into_and_that_is_no_damage(headrace: Headrace, kept: Kept, home: Path) -> None:
    held = Checkpoint(folder=flow_folder(home)).hold()
    said = headrace("--set", f"home={home}", "checkpoint", "verify")
    held.close()
    assert said.code == 3  # 1 would say that something is damaged
    assert f"{kept.app.name}/v1/{kept.flowing.flow.name} runs" in said.err
    assert f"stop process {os.getpid()} first" in said.err


def test_verify_says_what_is_wrong_and_repair_what_it_would_do(headrace: Headrace, kept: Kept, home: Path) -> None:
    here = ("--set", f"home={home}", "--set", f"kafka.bootstrap={kept.flowing.broker.bootstrap}")
    assert headrace(*here, "checkpoint", "verify").code == 0

    tear(flow_folder(home) / "counts.json")
    said = headrace(*here, "checkpoint", "verify", kept.app.name)
    assert said.code == 1
    assert "counts.json cannot be read" in said.out
    found = headrace(*here, "checkpoint", "verify", "--json").json
    (error,) = [one for one in found if one["severity"] == "error"]
    assert error["where"] == str(flow_folder(home) / "counts.json")
    assert error["why"]
    assert error["fix"]

    said = headrace(*here, "checkpoint", "repair")
    assert "nothing was changed; add --yes to do it" in said.err
    assert headrace(*here, "checkpoint", "verify").code == 1
    assert headrace(*here, "checkpoint", "repair", "--yes").code == 0
    assert headrace(*here, "checkpoint", "verify").code == 0

    commits = flow_folder(home) / "commits.txt"
    known = commits.read_text()
    commits.write_text(known[::-1])
    assert "commits.txt names the topic" in headrace(*here, "checkpoint", "verify").out
    commits.write_text(known)

    tear(flow_folder(home) / "spark" / "metadata")
    said = headrace(*here, "checkpoint", "repair", "--yes")
    assert said.code == 1
    assert "nothing that is safe to mend" in said.err


def test_rescale_says_what_it_would_do(headrace: Headrace, kept: Kept, home: Path) -> None:
    said = headrace("--set", f"home={home}", "checkpoint", "rescale", "--partitions", "4", "--json")

    assert said.json == [
        {"flow": f"{kept.app.name}/v1/{kept.flowing.flow.name}", "from": 2, "to": 4, "done": False, "kept": None}
    ]


def test_what_is_not_there_is_said(headrace: Headrace, home: Path) -> None:
    said = headrace("--set", f"home={home}", "checkpoint", "show", "nobody")

    assert said.code == 2
    assert "there is no checkpoint of nobody" in said.err
