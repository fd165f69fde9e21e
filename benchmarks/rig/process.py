"""A process of a benchmark's own, and the line to it: who sends, reads or runs must not share what is measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

import psutil


@dataclass(frozen=True, slots=True)
class Begun:
    """One that works until it is asked, or the line is closed."""

    process: psutil.Process
    line: Connection

    def asked(self) -> Any:
        """What it answers."""
        self.line.send("tell")
        return self.line.recv()

    def busy(self) -> float:
        """Seconds of processor time, of it and those it started."""
        return sum(sum(one.cpu_times()[:2]) for one in (self.process, *self.process.children(recursive=True)))


@contextmanager
def begun(work: Callable[..., None], *given: Any) -> Iterator[Begun]:
    """Calls it in a process of its own, with the other end of the line as its last argument."""
    here, there = get_context("spawn").Pipe()
    process = get_context("spawn").Process(target=work, args=(*given, there))
    process.start()
    there.close()
    try:
        yield Begun(psutil.Process(process.pid), here)
    finally:
        here.close()
        process.join()
