"""What Java knows before it starts: the classes that drivers load, in the form they have in memory, and which of their
methods are busy and how. It learns that once, in a rehearsal (ops/rehearsal.py).

With it a driver starts in half the processor time, and compiles what counts while it starts; without it, or by a Java
older than 25, everything works as well.
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
from headrace.stack import jars
from headrace.stack.ivy import pyspark_jars
from headrace.stack.java import find_java, release, version

LEARNS = 25
"""Since this Java (JEP 515)."""
_KEPT = 3
"""Archives, 250 MB each: of the last kernels, or of other checkouts."""

Rehearse = Callable[[Settings, Path], str]
"""Lets a driver do what drivers do, with `learning(file)`; what went wrong, or nothing."""


def options(cache: Path, classpath: list[Path]) -> list[str]:
    """What the JVM is told, so that it uses the archive if there is one. One that does not fit it leaves alone."""
    archive = _file(cache, classpath)
    return [f"-XX:AOTCache={archive}"] if archive.exists() else []


def learning(into: Path) -> list[str]:
    """What the JVM of the rehearsal is told; it writes the file when it ends."""
    return ["-XX:AOTMode=record", f"-XX:AOTConfiguration={into}"]


def make(settings: Settings, rehearse: Rehearse, *, tell: Callable[[str], None] = jars.silent) -> None:
    """Makes the archive if there is none for this Java and these jars."""
    if (version(find_java()) or 0) < LEARNS:
        return
    classpath = our_jars(settings.cache, tell=tell)
    archive = _file(settings.cache, classpath)
    refused = archive.with_suffix(".none")  # what failed once is not tried at every start
    archive.parent.mkdir(parents=True, exist_ok=True)
    with alone(archive.parent):
        if archive.exists() or refused.exists():
            return
        tell("rehearsing, once, two minutes: later starts take half as long, and are fast from the first event on")
        with tempfile.TemporaryDirectory(dir=archive.parent) as folder:
            learned = Path(folder, "learned")
            if trouble := rehearse(settings, learned) or _kept(learned, classpath, archive):
                refused.write_text(trouble)
                tell(f"not rehearsed, starts take longer: {trouble}")
    for old in sorted(archive.parent.glob("*.aot"), key=lambda file: file.stat().st_mtime)[:-_KEPT]:
        old.unlink()


def _kept(learned: Path, classpath: list[Path], archive: Path) -> str:
    """Makes the archive of it: whole, or not at all. What went wrong, or nothing."""
    work = archive.with_suffix(".part")
    command = [str(find_java()), "-cp", class_path(classpath), *SPARK_OPTIONS]
    command += ["-XX:AOTMode=create", f"-XX:AOTConfiguration={learned}", f"-XX:AOTCache={work}"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0 or not work.exists():
        work.unlink(missing_ok=True)
        return (done.stdout + done.stderr).strip().rpartition("\n")[2] or f"java ended with {done.returncode}"
    work.replace(archive)
    return ""


def _file(cache: Path, classpath: list[Path]) -> Path:
    """Java refuses an archive once a jar was written anew, even the same: what was installed again has its own."""
    written = [f"{jar} {jar.stat().st_mtime_ns}" for jar in (*classpath, *sorted(pyspark_jars().glob("*.jar")))]
    return cache / "learned" / f"{_hash(' '.join([release(find_java()), *written]))}.aot"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
