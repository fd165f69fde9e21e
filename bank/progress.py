"""What long work says of how far it is, now and then, to whoever wants to hear it."""

from __future__ import annotations

from collections.abc import Callable

Say = Callable[[str], None]


def silent(_: str) -> None:
    """Nobody listens."""
