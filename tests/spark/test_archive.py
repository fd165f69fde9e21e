"""The archive of classes: made once for a Java and its jars, used by later starts, left alone when it does not fit."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from headrace.base.settings import Settings
from headrace.spark import archive
from headrace.spark.gateway import SPARK_OPTIONS, class_path
from headrace.spark.kernels import our_jars
from headrace.stack.java import find_java

SUBMIT = "org.apache.spark.deploy.SparkSubmit"


def started(classpath: list[Path], *options: str) -> str:
    """What a JVM that starts as ours do, and ends at once, says of where it has its classes from."""
    command = [str(find_java()), "-cp", class_path(classpath), *SPARK_OPTIONS, *options, "-Xlog:class+load"]
    done = subprocess.run([*command, SUBMIT, "--version"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return next(line for line in done.stdout.splitlines() if f"{SUBMIT} source: " in line)


@pytest.fixture
def classpath(settings: Settings) -> list[Path]:
    return our_jars(settings.cache)


def test_it_is_made_once_and_classes_come_from_it(settings: Settings, classpath: list[Path]) -> None:
    said: list[str] = []
    archive.make(settings)
    archive.make(settings, tell=said.append)

    assert said == []
    assert "shared objects file (top)" in started(classpath, *archive.options(settings.cache, classpath))


def test_without_one_or_with_one_that_does_not_fit_a_jvm_starts_as_well(
    settings: Settings, classpath: list[Path], tmp_path: Path
) -> None:
    assert archive.options(tmp_path, classpath) == []

    archive.make(settings)
    own = Path(shutil.copy(classpath[0], tmp_path))
    told = archive.options(settings.cache, classpath)

    assert "shared objects file (top)" not in started([own, *classpath[1:]], *told)


def test_jars_that_were_written_again_have_another(settings: Settings, classpath: list[Path], tmp_path: Path) -> None:
    own = [Path(shutil.copy2(classpath[0], tmp_path)), *classpath[1:]]
    before = archive._files(settings.cache, own)
    os.utime(own[0], (1, 1))

    assert archive._files(settings.cache, own)[0] == before[0]
    assert archive._files(settings.cache, own)[1] != before[1]
