"""Money: what fraud took, and what the flow and a batch job saved of it, as ids, labels and amounts become known."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from time import monotonic

_GENUINE = 100_000
"""Labels of genuine ids of which nothing else is known: so many are remembered."""


@dataclass(slots=True)
class Fate:
    """What is known of one id."""

    born: float
    fraud: Decimal = Decimal(0)
    """What it asked for, if it is fraud."""
    stopped: bool = False
    stopped_by_batch: bool = False
    at: datetime | None = None
    """Of the label that counts."""


class Money:
    """Sums over ids that turned out to be fraud. What is known of an id comes in any order, within `keep` seconds."""

    def __init__(self, keep: float, now: Callable[[], float] = monotonic) -> None:
        self._keep, self._now = keep, now
        self._fates: dict[str, Fate] = {}  # the oldest first
        self._genuine = OrderedDict[str, datetime]()
        self.fraud = self.saved = self.saved_by_batch = Decimal(0)

    def labelled(self, id: str, fraud: bool, amount: Decimal, at: datetime) -> None:
        """A label. Of two the later by `at` counts, whichever comes first."""
        before = self._fates[id].at if id in self._fates else self._genuine.get(id)
        if before is not None and at < before:
            return
        if not fraud and id not in self._fates:
            self._remember(id, at)
            return
        fate = self._fate(id)
        fate.at = at
        more, fate.fraud = (amount if fraud else Decimal(0)) - fate.fraud, amount if fraud else Decimal(0)
        self.fraud += more
        self.saved += more * fate.stopped
        self.saved_by_batch += more * fate.stopped_by_batch

    def stopped(self, id: str) -> None:
        """The flow did not let it through."""
        fate = self._fate(id)
        self.saved += fate.fraud * (not fate.stopped)
        fate.stopped = True

    def stopped_by_batch(self, id: str) -> None:
        """The batch job would not have let it through: it knew by then."""
        fate = self._fate(id)
        self.saved_by_batch += fate.fraud * (not fate.stopped_by_batch)
        fate.stopped_by_batch = True

    def _fate(self, id: str) -> Fate:
        now = self._now()
        while self._fates and now - next(iter(self._fates.values())).born > self._keep:
            del self._fates[next(iter(self._fates))]
        if id not in self._fates:
            self._fates[id] = Fate(now, at=self._genuine.pop(id, None))
        return self._fates[id]

    def _remember(self, id: str, at: datetime) -> None:
        """Most labels say so, and no sum depends on them; but one that is older may still come."""
        self._genuine[id] = at
        self._genuine.move_to_end(id)
        if len(self._genuine) > _GENUINE:
            self._genuine.popitem(last=False)
