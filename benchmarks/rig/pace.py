"""A steady rate: numbers that come when they are due, for senders that must not take the processor they measure."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import count
from typing import Any


def paced(client: Any, rate: int) -> Iterator[int]:
    """0, 1, 2, ..., so many a second. A producer's reports are taken in between; its own poll is no way to wait: it
    counts whole milliseconds, and spins for the rest."""
    began = time.perf_counter()
    for n in count():
        if (wait := began + n / rate - time.perf_counter()) > 0:
            time.sleep(wait)
        client.poll(0)
        yield n
