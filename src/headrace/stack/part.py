"""A part: one embedded server, as the supervisor sees it."""

from __future__ import annotations

import signal
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

LOOPBACK = "127.0.0.1"

Run = Callable[[Sequence[str]], None]  # runs a command of the part to its end, or raises what went wrong
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part(ABC):
    """How a server is prepared, asked and stopped; all it owns lies in its own directory."""

    name: str
    home: Path  # the part's own directory
    ports: dict[str, int]  # what it listens on; the one for clients has the name of the part

    stop: ClassVar[signal.Signals] = signal.SIGTERM
    user: ClassVar[str] = ""  # as whom it runs; "": as we do
    corrupt: ClassVar[tuple[str, ...]] = ()  # what its log says when its data cannot be used
    alarm: ClassVar[str] = ""  # a pattern: what its log says when it starts at the price of losing data

    @property
    def log(self) -> Path:
        return self.home / f"{self.name}.log"

    @property
    def address(self) -> str:
        """Where it listens, for people to read."""
        return f"{LOOPBACK}:{self.ports[self.name]}"

    @property
    @abstractmethod
    def url(self) -> str:
        """All a client needs to connect, password included."""

    @abstractmethod
    def prepare(self, run: Run) -> Sequence[str]:
        """Makes what is missing (data directory, configuration) and returns the command of the server."""

    @abstractmethod
    def answers(self) -> bool:
        """Whether it serves: one real call of its protocol."""
