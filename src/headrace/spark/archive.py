"""The archive of classes: what a driver's JVM loads, kept in the form it has in memory.

With it a start takes half the processor time; without it everything works as well.
"""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from headrace.base.settings import Settings
from headrace.spark.gateway import SPARK_OPTIONS, class_path
from headrace.spark.kernels import alone, our_jars
from headrace.spark.profile import spark_settings
from headrace.stack import jars
from headrace.stack.ivy import pyspark_jars
from headrace.stack.java import find_java, release

_KEPT = 3
"""Archives of earlier kernels, 170 MB each, that are kept."""


def options(cache: Path, classpath: list[Path]) -> list[str]:
    """What the JVM is told, so that it uses the archive if there is one. One that does not fit it leaves alone."""
    base, top = _files(cache, classpath)
    return [f"-XX:SharedArchiveFile={base}:{top}"] if base.exists() and top.exists() else []


def make(settings: Settings, *, tell: Callable[[str], None] = jars.silent) -> None:
    """Makes the archive if there is none for this Java and these jars."""
    classpath = our_jars(settings.cache, tell=tell)
    base, top = _files(settings.cache, classpath)
    base.parent.mkdir(parents=True, exist_ok=True)
    with alone(base.parent):
        if top.exists() or _refused(top).exists():
            return
        tell("archiving the classes of Spark, once: later starts take half as long")
        with tempfile.TemporaryDirectory(dir=base.parent) as folder:
            made = base.exists() or _ran("-Xshare:dump", made=base)
            if not (made and _archived(settings, classpath, base, top, folder)):
                _refused(top).touch()  # a Java that cannot: it is not asked again
    for old in sorted(base.parent.glob("*-top.jsa"), key=lambda file: file.stat().st_mtime)[:-_KEPT]:
        old.unlink()


def _archived(settings: Settings, classpath: list[Path], base: Path, top: Path, folder: str) -> bool:
    conf = spark_settings(settings, "live") | {"spark.master": "local[2]", "spark.local.dir": folder}
    told = [f"{name}={value}" for name, value in {**conf, "spark.app.name": "warm"}.items()]
    return _ran(
        *("-cp", class_path(classpath), *SPARK_OPTIONS, f"-XX:SharedArchiveFile={base}"),
        *("headrace.Warm", f"{folder}/checkpoint", *told),
        made=top,
        flag="ArchiveClassesAtExit",
    )


def _ran(*words: str, made: Path, flag: str = "SharedArchiveFile") -> bool:
    """Whether Java, told so, has made the file: whole, or not at all."""
    work = made.with_suffix(".part")
    command = [str(find_java()), f"-XX:{flag}={work}", *words]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode != 0 or not work.exists():
        work.unlink(missing_ok=True)
        return False
    work.replace(made)
    return True


def _files(cache: Path, classpath: list[Path]) -> tuple[Path, Path]:
    """The archive of Java's own classes, and the one on top of it. Java refuses it once a jar was written anew, even
    the same: so what was installed again has an archive of its own."""
    folder, java = cache / "classes", release(find_java())
    written = [f"{jar} {jar.stat().st_mtime_ns}" for jar in (*classpath, *sorted(pyspark_jars().glob("*.jar")))]
    return folder / f"{_hash(java)}.jsa", folder / f"{_hash(' '.join([java, *written]))}-top.jsa"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _refused(top: Path) -> Path:
    return top.with_suffix(".none")
