"""Fetching what the wheels do not hold: the jars, verified, the kernels, compiled, and a rehearsal of them; once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from headrace.base.settings import Settings
from headrace.ops.rehearsal import rehearse
from headrace.spark import archive
from headrace.spark.kernels import kernels_jar
from headrace.stack import jars
from headrace.stack.jars import Progress, silent

NEEDED = ("kafka", "spark")
CONNECT = ("connect", "debezium")


def fetch(
    settings: Settings,
    *,
    connect: bool = False,
    rehearsal: bool = True,
    tell: Callable[[str], None] = silent,
    progress: Progress | None = None,
) -> list[Path]:
    """Every jar that is needed; those of Kafka Connect too if asked. Nothing is done twice."""
    found = [
        file
        for group in (*NEEDED, *(CONNECT if connect else ()))
        for file in jars.fetch(group, settings.cache, tell=tell, progress=progress)
    ]
    kernels = kernels_jar(settings.cache, tell=tell)
    if rehearsal:
        archive.make(settings, rehearse, tell=tell)
    return [*found, kernels]
