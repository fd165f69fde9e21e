"""Fetching what the wheels do not hold: the jars, verified, and the kernels, compiled; once per user."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from headrace.base.settings import Settings
from headrace.spark.kernels import kernels_jar
from headrace.stack import jars
from headrace.stack.jars import Progress, silent

NEEDED = ("kafka", "spark")
CONNECT = ("connect", "debezium")


def fetch(
    settings: Settings,
    *,
    connect: bool = False,
    tell: Callable[[str], None] = silent,
    progress: Progress | None = None,
) -> list[Path]:
    """Every jar that is needed; those of Kafka Connect too if asked. Nothing is downloaded twice."""
    found = [
        file
        for group in (*NEEDED, *(CONNECT if connect else ()))
        for file in jars.fetch(group, settings.cache, tell=tell, progress=progress)
    ]
    return [*found, kernels_jar(settings.cache, tell=tell)]
