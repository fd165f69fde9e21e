"""The outputs of the bank as its readers find them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from headrace.chaos.books import Place, Window
from headrace.log.broker import Broker
from headrace.log.dead import MARK, dead_topic
from headrace.log.follow import Follower


@dataclass(slots=True)
class Outputs:
    """All that was ever committed, in the order of the log."""

    ledger: list[int] = field(default_factory=list)
    late: list[tuple[int, datetime]] = field(default_factory=list)
    """Transfers that came too late, and the watermark that they met."""
    spend: list[tuple[Window, int, int]] = field(default_factory=list)
    """Window, transfers, cents."""
    dead: list[Place] = field(default_factory=list)
    balances: list[tuple[str, int, int, int]] = field(default_factory=list)
    """Account, cents, moves, revision."""
    changes: list[tuple[str, Any, Any, datetime]] = field(default_factory=list)
    """Of branches: branch, before, after, version."""


class Reader:
    """Reads the outputs piece by piece, so that a drain can ask often."""

    def __init__(self, broker: Broker, *, isolation: str = "read_committed") -> None:
        self.outputs = Outputs()
        names = ("chaos-ledger", "chaos-late", "chaos-spend", "chaos-balances", "chaos-branches")
        self._topics = {name: Follower(broker, name, isolation=isolation) for name in names}
        self._grave = Follower(broker, dead_topic("chaos-transfers"), isolation=isolation)

    def refresh(self) -> Outputs:
        """What is committed by now."""
        out = self.outputs
        out.ledger += (row["transfer"] for row in self._rows("chaos-ledger"))
        out.late += ((row["transfer"], _time(row["watermark"])) for row in self._rows("chaos-late"))
        out.spend += (
            ((row["card"], _time(row["window_start"])), row["times"], row["cents"]) for row in self._rows("chaos-spend")
        )
        out.balances += (
            (row["account"], row["cents"], row["moves"], row["revision"]) for row in self._rows("chaos-balances")
        )
        out.changes += (
            (row["key"], row["before"], row["after"], _time(row["version"])) for row in self._rows("chaos-branches")
        )
        for message in self._grave.refresh():
            told = dict(message.headers())
            out.dead.append((int(told[f"{MARK}partition"]), int(told[f"{MARK}offset"])))
        return out

    def close(self) -> None:
        for follower in (*self._topics.values(), self._grave):
            follower.close()

    def _rows(self, name: str) -> list[dict[str, Any]]:
        return [json.loads(message.value()) for message in self._topics[name].refresh()]


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
