"""What Java knows before it starts: the classes that drivers load, in the form they have in memory, and which of their
methods are busy and how. It learns that once, in a rehearsal (ops/rehearsal.py).

With it a driver starts in half the processor time, and compiles what counts while it starts; without it, or by a Java
older than 25, everything works as well.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from headrace.base.settings import Settings
from headrace.spark.gateway import SPARK_OPTIONS, class_path, with_class_path
from headrace.spark.kernels import alone, our_jars
from headrace.stack import jars
from headrace.stack.java import environment_options, find_java, plain, release, version

LEARNS = 25
"""Since this Java (JEP 515)."""
_KEPT = 3
"""Archives, 250 MB each: of the last kernels, or of other checkouts."""
_PATIENCE = 300.0

Rehearse = Callable[[Settings, Path], str]
"""Lets a driver do what drivers do, with `learning(file)`; what went wrong, or nothing."""


def options(cache: Path, classpath: list[Path]) -> list[str]:
    """What the JVM is told, so that it uses the archive if there is one. One that does not fit it leaves alone; but one
    that is told of another as well would not start."""
    archive = _file(cache, classpath)
    if not archive.exists() or any(other in environment_options() for other in ("Xshare", "SharedArchive", "XX:AOT")):
        return []
    with suppress(OSError):  # a cache that can only be read
        os.utime(archive)  # the last ones used are kept
    return [f"-XX:AOTCache={archive}"]


def refusal(cache: Path, classpath: list[Path]) -> tuple[str, Path]:
    """Why there is none though it was tried, if so, and the file that says it: without the file it is tried again."""
    refused = _file(cache, classpath).with_suffix(".none")
    return refused.read_text() if refused.exists() else "", refused


def learning(into: Path) -> list[str]:
    """What the JVM of the rehearsal is told; it writes the file when it ends."""
    return ["-XX:AOTMode=record", f"-XX:AOTConfiguration={into}"]


def make(settings: Settings, rehearse: Rehearse, *, tell: Callable[[str], None] = jars.silent) -> None:
    """Makes the archive if there is none for this Java and these jars."""
    if (version(find_java()) or 0) < LEARNS:
        return
    classpath = our_jars(settings.cache, tell=tell)
    archive = _file(settings.cache, classpath)
    if archive.exists():
        return
    archive.parent.mkdir(parents=True, exist_ok=True)
    with alone(archive.parent):
        if archive.exists():  # another process has made it while we waited
            return
        trouble, refused = refusal(settings.cache, classpath)
        if not trouble:
            tell("rehearsing, once, two minutes: later starts take half as long, and are fast from the first event on")
            _tidy(archive.parent)
            with tempfile.TemporaryDirectory(dir=archive.parent, ignore_cleanup_errors=True) as folder:
                learned = Path(folder, "learned")
                if trouble := rehearse(settings, learned) or _kept(learned, classpath, archive):
                    refused.write_text(trouble)
        if trouble:
            tell(f"not rehearsed, so starts take longer: {trouble}\nto try again, remove {refused}")


def _tidy(folder: Path) -> None:
    """Removes what was not used for longest, and what a process left that was killed."""
    archives = sorted(folder.glob("*.aot"), key=lambda file: file.stat().st_mtime)
    for old in (*archives[: 1 - _KEPT], *folder.glob("*.part")):
        old.unlink()
    for left in folder.glob("tmp*"):
        shutil.rmtree(left, ignore_errors=True)


def _kept(learned: Path, classpath: list[Path], archive: Path) -> str:
    """Makes the archive of it: whole, or not at all. What went wrong, or nothing."""
    work = archive.with_suffix(".part")
    command = [str(find_java()), *SPARK_OPTIONS]
    command += ["-XX:AOTMode=create", f"-XX:AOTConfiguration={learned}", f"-XX:AOTCache={work}"]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            env=with_class_path(plain(), class_path(classpath)),
            timeout=_PATIENCE,
        )
    except subprocess.TimeoutExpired:
        work.unlink(missing_ok=True)
        return f"Java did not make an archive within {_PATIENCE:.0f} s"
    if done.returncode != 0 or not work.exists():
        work.unlink(missing_ok=True)
        return (done.stdout + done.stderr).strip().rpartition("\n")[2] or f"java ended with {done.returncode}"
    work.replace(archive)
    return ""


def _file(cache: Path, classpath: list[Path]) -> Path:
    """Java refuses an archive once a jar was written anew, even the same: what was installed again has its own."""
    written = [f"{jar} {jar.stat().st_mtime_ns}" for jar in class_path(classpath)]
    of = hashlib.sha256(" ".join([release(find_java()), *written]).encode()).hexdigest()
    return cache / "learned" / f"{of[:16]}.aot"
