"""A row as features remember it."""

from __future__ import annotations

from typing import Any, NamedTuple

from headrace.steps.seen import Place


class Known(NamedTuple):
    """Its time, and what windows and `last` ask of it. `id`: a hash of it, if a row is told once; eight bytes tell the
    few rows of a key apart. `place`: if vectors say what they are over."""

    time: int
    args: tuple[Any, ...]
    id: int = 0
    place: Place | None = None
