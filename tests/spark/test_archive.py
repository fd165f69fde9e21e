"""What Java has learned: kept once for a Java and its jars, used by later starts, left alone when it does not fit."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from headrace.base.settings import Settings, load
from headrace.ops.rehearsal import rehearse
from headrace.spark import archive
from headrace.spark.gateway import SPARK_OPTIONS, class_path, with_class_path
from headrace.spark.kernels import our_jars
from headrace.stack.java import find_java, version

pytestmark = [
    pytest.mark.timeout(900),  # where `make setup` was not run with these kernels
    pytest.mark.skipif((version(find_java()) or 0) < archive.LEARNS, reason="this Java does not learn"),
]
SUBMIT = "org.apache.spark.deploy.SparkSubmit"


def started(classpath: list[Path], *options: str) -> str:
    """What a JVM that starts as ours do, and ends at once, says of where it has its classes from."""
    command = [str(find_java()), *SPARK_OPTIONS, *options, "-Xlog:class+load"]
    environment = with_class_path(os.environ, class_path(classpath))
    done = subprocess.run([*command, SUBMIT, "--version"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return next(line for line in done.stdout.splitlines() if f"{SUBMIT} source: " in line)


@pytest.fixture
def classpath(settings: Settings) -> list[Path]:
    return our_jars(settings.cache)


def test_it_is_made_once_and_classes_come_from_it(settings: Settings, classpath: list[Path]) -> None:
    said: list[str] = []
    archive.make(settings, rehearse)
    archive.make(settings, rehearse, tell=said.append)

    assert said == []
    assert "shared objects file" in started(classpath, *archive.options(settings.cache, classpath))


def test_it_is_left_out_where_the_environment_names_another(
    settings: Settings, classpath: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    archive.make(settings, rehearse)
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Xshare:auto")

    assert archive.options(settings.cache, classpath) == []  # with both Java would not start


def test_what_was_not_used_for_longest_goes_and_what_was_left_half_made(tmp_path: Path) -> None:
    for age, name in enumerate(("new.aot", "second.aot", "third.aot", "old.aot", "half.part")):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (1_000 - age, 1_000 - age))
    (tmp_path / "tmpx").mkdir()
    (tmp_path / "tmpx" / "learned").touch()

    archive._tidy(tmp_path)

    assert sorted(file.name for file in tmp_path.iterdir()) == ["new.aot", "second.aot"]  # and the one to be made


def test_without_one_or_with_one_that_does_not_fit_a_jvm_starts_as_well(
    settings: Settings, classpath: list[Path], tmp_path: Path
) -> None:
    assert archive.options(tmp_path, classpath) == []

    archive.make(settings, rehearse)
    own = Path(shutil.copy(classpath[0], tmp_path))
    told = archive.options(settings.cache, classpath)
    assert told

    assert "shared objects file" not in started([own, *classpath[1:]], *told)


def test_jars_that_were_written_again_have_another(settings: Settings, classpath: list[Path], tmp_path: Path) -> None:
    own = [Path(shutil.copy2(classpath[0], tmp_path)), *classpath[1:]]
    before = archive._file(settings.cache, own)
    os.utime(own[0], (1, 1))

    assert archive._file(settings.cache, own) != before


@pytest.fixture
def elsewhere(settings: Settings, tmp_path: Path) -> Settings:
    """Settings with a cache that has the jars and nothing learned."""
    for part in settings.cache.iterdir():
        if part.name != "learned":
            (tmp_path / part.name).symlink_to(part)
    return load({"home": str(tmp_path / "home"), "cache": str(tmp_path)}, env={})


def test_what_failed_once_is_told_and_not_tried_again(elsewhere: Settings) -> None:
    said: list[str] = []
    tried: list[Path] = []

    def fails(_: Settings, learned: Path) -> str:
        tried.append(learned)
        return "no broker"

    archive.make(elsewhere, fails, tell=said.append)
    archive.make(elsewhere, fails, tell=said.append)

    assert len(tried) == 1
    why, refused = archive.refusal(elsewhere.cache, our_jars(elsewhere.cache))
    assert why == "no broker"
    assert said[1:] == [f"not rehearsed, so starts take longer: no broker\nto try again, remove {refused}"] * 2
    assert archive.options(elsewhere.cache, our_jars(elsewhere.cache)) == []

    refused.unlink()
    archive.make(elsewhere, fails)
    assert len(tried) == 2


def test_what_java_cannot_read_is_no_archive(elsewhere: Settings) -> None:
    def writes_nonsense(_: Settings, learned: Path) -> str:
        learned.write_text("nothing that Java wrote")
        return ""

    said: list[str] = []
    archive.make(elsewhere, writes_nonsense, tell=said.append)

    assert said[-1].startswith("not rehearsed, so starts take longer: ")
    assert archive.options(elsewhere.cache, our_jars(elsewhere.cache)) == []


def test_a_java_that_cannot_learn_is_not_asked(elsewhere: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "LEARNS", 99)

    def never(_: Settings, __: Path) -> str:
        raise AssertionError("it was asked")

    archive.make(elsewhere, never)
