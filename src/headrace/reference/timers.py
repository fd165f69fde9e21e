"""Timers: which keys time has something to say to, and when."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Any

Key = tuple[Any, ...]


class Timers:
    """One moment per key; a heap in which moments that no longer hold are passed over."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Key]] = []
        self._due: dict[Key, int] = {}
        self._number = 0  # keeps the heap from comparing keys

    def set(self, key: Key, due: int | None) -> None:
        """The key's next moment, in ms; None: it has none."""
        if due is None:
            self._due.pop(key, None)
        elif self._due.get(key) != due:
            self._due[key] = due
            self._number += 1
            heapq.heappush(self._heap, (due, self._number, key))

    def reached(self, watermark: int | None) -> Iterator[Key]:
        """The keys whose moment has come, each taken out."""
        while watermark is not None and self._heap and self._heap[0][0] <= watermark:
            due, _, key = heapq.heappop(self._heap)
            if self._due.get(key) == due:
                del self._due[key]
                yield key
