"""Changes of a table or view: at most one net change per key and batch (rule J5), with versions that only grow.

A change is {op, key, before, after, version}; steps work on one key, so the key is the caller's to add. The version is
the version time of what caused the change, in micros, but at least one more than that of the key's last change: so
a store that keeps the greatest version is right, whichever of two tables the change came from. It is also the change's
event time, and its cause for rule D2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from headrace.steps.row import MILLI, up_to_ms
from headrace.steps.version import Values

INSERT = "insert"
UPDATE = "update"
DELETE = "delete"

NO_VERSION = -(1 << 63)  # older than every version


class Change(NamedTuple):
    op: str  # insert | update | delete
    before: Values | None
    after: Values | None
    version: int


@dataclass(slots=True)
class Told:
    """What was last told of a key. The version of a deleted key is remembered for `keep` micros, so that the key's
    versions grow over its return."""

    values: Values | None = None
    version: int = NO_VERSION

    @property
    def empty(self) -> bool:
        return self.version == NO_VERSION

    def tell(self, after: Values | None, cause: int) -> list[Change]:
        """The net change to `after`, none if that is what was told last. `cause`: the version time of its cause."""
        before = self.values
        if before == after:
            return []
        self.values = after
        self.version = max(cause, self.version + 1)
        return [Change(_op(before, after), before, after, self.version)]

    def forget(self, keep: int, watermark: int | None) -> None:
        if self.values is None and watermark is not None and self.version + keep <= watermark * MILLI:
            self.version = NO_VERSION

    def due(self, keep: int) -> int | None:
        """The watermark, in ms, at which a deleted key is forgotten."""
        return None if self.values is not None or self.empty else up_to_ms(self.version + keep)


def reshaped(change: Change, before: Values | None, after: Values | None) -> Change | None:
    """The same change seen through a filter or a projection; None if nothing of it is left to see."""
    if before == after:
        return None
    return Change(_op(before, after), before, after, change.version)


def _op(before: Values | None, after: Values | None) -> str:
    return INSERT if before is None else DELETE if after is None else UPDATE
