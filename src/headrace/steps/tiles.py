"""Windows in tiles: rows are added up by pieces of time, as soon as no row can come that would see only some of them.

A tile is a piece of time of one width, counted from the epoch. At time t a window of size S in tiles of width w is the
tile that t lies in, up to t, and the S / w - 1 tiles before it. So it forgets a tile at a time, and covers between
S - w and S.

| 1 h in tiles of 5 min | covers              |
|-----------------------|---------------------|
| at 10:00              | 09:05:00 - 10:00:00 |
| at 10:04              | 09:05:00 - 10:04:00 |
| at 10:05              | 09:10:00 - 10:05:00 |

Its value is its tiles, merged in order, each made of its rows in the order of time. It is the same to the last bit
whether a tile was added up long ago or is made of rows now: in the stream, online and as of any time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from headrace.steps.algebra import Algebra
from headrace.steps.known import Known

Tile = list[Any]
"""What its rows say: a state for each aggregate."""
Tiles = dict[int, Tile]
"""Of one key and window, by start."""
PLACE = -2
"""Among places: what is asked of a row is where it came from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiling:
    """How a window is kept in tiles. Times in micros. `places`: where each aggregate's argument stands among the row's
    args, -1: it has none. `input`: whose rows."""

    size: int
    width: int
    algebras: tuple[Algebra, ...]
    places: tuple[int, ...]
    input: int

    def tile_of(self, time: int) -> int:
        """Start of the tile that a time lies in."""
        return time - time % self.width

    def first_of(self, time: int) -> int:
        """Start of the first tile of the window at this time."""
        return self.tile_of(time) + self.width - self.size

    def gone(self, time: int) -> int:
        """When a row of this time has left the window, with all of its tile."""
        return self.tile_of(time) + self.size

    def put(self, tiles: Tiles, row: Known) -> None:
        """Adds a row to its tile."""
        start = self.tile_of(row.time)
        if start not in tiles:
            tiles[start] = self._merged([])
        self._add(tiles[start], row)

    def values(self, tiles: Tiles, rows: Iterable[Known], time: int) -> list[Any]:
        """The aggregates at this time. `rows`: those in the window that are in no tile yet, by time."""
        own: Tiles = {}
        for row in rows:
            start = self.tile_of(row.time)
            if start not in own:
                own[start] = self._merged([tiles[start]] if start in tiles else [])  # what is kept stays as it is
            self._add(own[start], row)
        whole, first = tiles | own, self.first_of(time)
        total = self._merged(whole[start] for start in sorted(whole) if first <= start <= time)
        return [algebra.value(state) for algebra, state in zip(self.algebras, total, strict=True)]

    def forget(self, tiles: Tiles, time: int) -> None:
        """Drops the tiles that nobody asks for at this time or after it."""
        for start in [start for start in tiles if self.gone(start) <= time]:
            del tiles[start]

    def _add(self, tile: Tile, row: Known) -> None:
        for i, (algebra, place) in enumerate(zip(self.algebras, self.places, strict=True)):
            value = row.args[place] if place >= 0 else row.place if place == PLACE else None
            tile[i] = algebra.add(tile[i], value, (row.time, 0, 0, 0, ""))  # those of one time are added as they came

    def _merged(self, tiles: Iterable[Tile]) -> Tile:
        total = [algebra.empty() for algebra in self.algebras]
        for tile in tiles:
            total = [algebra.merge(a, b) for algebra, a, b in zip(self.algebras, total, tile, strict=True)]
        return total
