"""The Scala kernels: compiled on first use by the compiler inside PySpark, cached by the hash of what went in."""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from headrace.base.errors import KernelBroken
from headrace.stack import jars
from headrace.stack.ivy import pyspark_jars
from headrace.stack.java import find_java

_PACKAGE = Path(__file__).resolve().parents[1]


def sources() -> list[Path]:
    """The Scala files: inside the package when installed, at the root of a checkout."""
    installed, checkout = _PACKAGE / "jvm", _PACKAGE.parents[1] / "jvm"
    return sorted((installed if installed.is_dir() else checkout).glob("*.scala"))


def kernels_jar(cache: Path, *, tell: Callable[[str], None] = jars.silent, files: list[Path] | None = None) -> Path:
    """The jar of all kernels, compiled if this version of them never was."""
    files = sources() if files is None else files
    libraries = jars.fetch("spark", cache, tell=tell)
    jar = cache / "kernels" / f"{_fingerprint(files, libraries)}.jar"
    if not jar.exists():
        jar.parent.mkdir(parents=True, exist_ok=True)
        with alone(jar.parent):
            if not jar.exists():  # another process may have compiled it while we waited
                tell(f"compiling {len(files)} Scala files, once")
                _compile(files, libraries, jar)
    return jar


def our_jars(cache: Path, *, tell: Callable[[str], None] = jars.silent) -> list[Path]:
    """As they stand on the class path: the kernels, then what they need."""
    return [kernels_jar(cache, tell=tell), *jars.fetch("spark", cache, tell=tell)]


def _fingerprint(files: list[Path], libraries: list[Path]) -> str:
    total = hashlib.sha256(version("pyspark").encode())
    for library in libraries:
        total.update(library.name.encode())
    for file in files:
        total.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return total.hexdigest()


def _compile(files: list[Path], libraries: list[Path], jar: Path) -> None:
    work = jar.with_name(f"{os.getpid()}.jar")
    classpath = os.pathsep.join([f"{pyspark_jars()}/*", *map(str, libraries)])
    options = ["-usejavacp", "-deprecation", "-feature", "-Xlint:infer-any", "-d", str(work)]
    try:
        done = subprocess.run(
            [str(find_java()), "-cp", classpath, "-Xss8m", "scala.tools.nsc.Main", *options, *map(str, files)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise KernelBroken(
                "the Scala kernels do not compile",
                why=(done.stdout + done.stderr).strip(),
                fix="correct the Scala at that line; in an installed package, reinstall headrace",
            )
        work.replace(jar)  # atomic: nobody ever sees half a jar
    finally:
        work.unlink(missing_ok=True)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """One process at a time."""
    with (folder / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
