"""The demo: the stack in the foreground, an app's topics, and a few made-up events a second until told to stop."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from importlib.util import find_spec
from typing import Any

from headrace.base.clock import SystemClock
from headrace.base.errors import AppNotFound
from headrace.base.settings import Settings
from headrace.model.app import App
from headrace.observe.part import PartView
from headrace.ops import apps, stack
from headrace.ops.connect import connect
from headrace.stack import stack as embedded
from headrace.stack.jars import Progress, silent

SEED = 2026

Sample = Callable[[int, Callable[[], datetime]], Iterator[Any]]
"""`events(seed, now)` in the module `sample` beside the app: events without end, dated by `now()`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demo:
    """A running demo."""

    app: App
    parts: list[PartView]
    settings: Settings
    sample: Sample

    def send(self, rate: float) -> Iterator[int]:
        """Sends events at this many a second, and says after each how many there were."""
        with connect(self.app, self.settings) as client:
            for count, event in enumerate(self.sample(SEED, SystemClock().now), start=1):
                client.send(event)
                yield count
                time.sleep(1 / rate)


@contextmanager
def demo(
    settings: Settings,
    name: str | None,
    *,
    tell: Callable[[str], None] = silent,
    progress: Progress | None = None,
) -> Iterator[Demo]:
    """Starts the stack for as long as the block lasts. Parts that ran before are used, and left running."""
    app = apps.chosen(name, settings)
    if app is None:
        raise AppNotFound(
            "there is no app to show", why="headrace.toml names none", fix='[apps]\nNAME = "module:variable"'
        )
    sample = _sample(name or next(iter(settings.apps)), settings)
    ran_before = embedded.addresses(settings.home) is not None
    parts = stack.up(settings, foreground=True, tell=tell, progress=progress)
    try:
        with connect(app, settings):  # makes the topics
            pass
        yield Demo(app=app, parts=parts, settings=settings, sample=sample)
    finally:
        if not ran_before:
            stack.down(settings)


def _sample(name: str, settings: Settings) -> Sample:
    module = settings.apps.get(name, name).partition(":")[0]
    package = module.rpartition(".")[0] or module
    try:
        found = find_spec(f"{package}.sample")
    except ModuleNotFoundError:  # the app is a file of its own, with nothing beside it
        found = None
    if found is None:
        raise AppNotFound(
            f"{name} has no made-up events",
            why=f"the demo takes them from `events(seed, now)` in {package}/sample.py, which does not exist",
            fix="write it, or send your own with `headrace up` and `headrace send`",
        )
    events: Sample = importlib.import_module(f"{package}.sample").events
    return events
