"""A table's versions: the row of a key from a version time on; the latest is the table's current value (rule J6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from headrace.steps.row import MILLI, Order, Row, up_to_ms

Values = tuple[Any, ...]


class Version(NamedTuple):
    """`values` is None for a tombstone. Versions compare by version time, ties by the later offset: by order R2."""

    order: Order
    values: Values | None

    @property
    def time(self) -> int:
        return self.order[0]

    def outlived(self, ttl: int, watermark: int | None) -> bool:
        """Whether it is a row that no version has renewed for `ttl` micros; 0: a row has all the time (rule J7)."""
        if not ttl or self.values is None or watermark is None:
            return False
        return self.time + ttl <= watermark * MILLI


class Enriched(NamedTuple):
    """A stream's row and what the table says for it, None if nothing. Its time and cause are the row's own."""

    row: Row
    values: Values | None


@dataclass(slots=True)
class Latest:
    """The latest version of one key, tombstones included: an older version that comes late must not undo a deletion.
    A tombstone is forgotten `keep` micros after its time, else the keys of deleted rows would stay for ever. A row is
    forgotten when it has outlived its `ttl`; nothing is remembered of it, for what is older has outlived it too."""

    version: Version | None = None

    @property
    def values(self) -> Values | None:
        return None if self.version is None else self.version.values

    def take(self, version: Version) -> None:
        if self.version is None or version.order > self.version.order:
            self.version = version

    def forget(self, keep: int, ttl: int, watermark: int | None) -> None:
        due = self.due(keep, ttl)
        if due is not None and watermark is not None and due <= watermark:
            self.version = None

    def due(self, keep: int, ttl: int) -> int | None:
        """The watermark, in ms, at which a tombstone or a row is forgotten."""
        if self.version is None:
            return None
        if self.version.values is None:
            return up_to_ms(self.version.time + keep)
        return up_to_ms(self.version.time + ttl) if ttl else None
