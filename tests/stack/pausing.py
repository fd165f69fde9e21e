"""An embedded broker that stands still for a while, as one does that swaps or is frozen."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from headrace.base.settings import Settings
from headrace.stack import stack as embedded


@contextmanager
def standing_still(settings: Settings) -> Iterator[None]:
    """The broker says nothing for a while."""
    kafka = next(part.pid for part in embedded.status(settings.home) if part.name == "kafka")
    assert kafka is not None
    os.kill(kafka, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(kafka, signal.SIGCONT)
