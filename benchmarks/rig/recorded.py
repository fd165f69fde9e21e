"""What became of the payments of a load: of each that was answered one decision must be recorded, and no more."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from headrace.base.settings import load
from headrace.log.read import read
from headrace.ops import endpoints
from rig.table import Line

TOPIC = "decisions"
PATIENCE = 180.0
"""Seconds in which `record`, which yields to all others, must have written the last."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """Of so many payments."""

    asked: int
    lost: int
    twice: int

    def line(self) -> Line:
        return Line(
            what="recorded: lost, twice",
            figure=f"{self.lost:,}, {self.twice:,}",
            target="0, 0",
            met=not self.lost and not self.twice,
            beside=f"  of {self.asked:,}",
        )


def recorded(ids: Collection[str], since: datetime) -> Recorded:
    """Waits until the bank that runs here has recorded all of these, or its patience ends."""
    broker, wanted, deadline = endpoints.broker(load()), set(ids), time.monotonic() + PATIENCE
    while True:
        found = Counter(id for one in read(broker, TOPIC, since) if (id := (one.key() or b"").decode()) in wanted)
        lost = len(wanted) - len(found)
        if not lost or time.monotonic() > deadline:
            return Recorded(len(wanted), lost, sum(count > 1 for count in found.values()))
        threading.Event().wait(5)
