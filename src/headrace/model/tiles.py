"""Tiles: the pieces of time that a window over a hot key is kept in, and how wide they are for which window."""

from __future__ import annotations

from datetime import timedelta

WIDTHS = (timedelta(days=1), timedelta(hours=1), timedelta(minutes=5))
LEAST = 12
"""So many tiles a window has at least: it forgets one at a time, a twelfth of itself or less."""
NEED_ROWS = ("collect",)
"""Kinds that ask for many single rows, which a tile does not keep."""


def width_of(size: timedelta) -> timedelta | None:
    """The widest tile that divides a window of this size into at least LEAST; None: there is none.

    >>> [str(width_of(timedelta(hours=hours))) for hours in (1, 24, 7 * 24, 30 * 24)]
    ['0:05:00', '1:00:00', '1:00:00', '1 day, 0:00:00']
    """
    return next((width for width in WIDTHS if size % width == timedelta(0) and size // width >= LEAST), None)
