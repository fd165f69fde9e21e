"""The history of a run: every call and its outcome (ok, failed, unknown), every fault, every commit that was seen."""

from __future__ import annotations

import json
import threading
import time
from bisect import bisect_right
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

Outcome = Literal["ok", "failed", "unknown"]
"""Unknown: the call may have worked. What it was about has to be looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """Something that was asked of the system."""

    at: float  # seconds since the run began
    call: str
    about: str
    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A token that was seen: batch `batch` of a flow's checkpoint is written."""

    at: float
    flow: str  # app/version/flow/query
    batch: int


class History:
    """Written to by several threads; kept in a file as well, a line an entry."""

    def __init__(self, file: Path) -> None:
        self._began = time.monotonic()
        self._alone = threading.Lock()
        self._file = file.open("a")
        self.calls: list[Call] = []
        self.commits: list[Commit] = []
        self.acknowledged: list[range] = []
        """Numbers of transfers that the broker has taken; those of any other it may have, or not."""

    @property
    def now(self) -> float:
        return time.monotonic() - self._began

    def note(self, call: str, about: str, outcome: Outcome = "ok") -> None:
        made = Call(at=self.now, call=call, about=about, outcome=outcome)
        with self._alone:
            self.calls.append(made)
            self._write(at=round(made.at, 3), call=call, about=about, outcome=outcome)

    def sent(self, first: int, until: int, outcome: Outcome) -> None:
        """Transfers of these numbers."""
        self.note("send", f"transfers {first} to {until - 1}", outcome)
        if outcome == "ok":
            with self._alone:
                self.acknowledged.append(range(first, until))

    def committed(self, flow: str, batch: int) -> None:
        seen = Commit(at=self.now, flow=flow, batch=batch)
        with self._alone:
            self.commits.append(seen)
            self._write(at=round(seen.at, 3), commit=flow, batch=batch)

    def commit_after(self, moment: float, flow: str = "") -> Commit | None:
        """The first that was seen after a moment, of flows whose name begins so."""
        later = islice(self.commits, bisect_right(self.commits, moment, key=lambda commit: commit.at), None)
        return next((commit for commit in later if commit.flow.startswith(flow)), None)

    def close(self) -> None:
        self._file.close()

    def _write(self, **entry: object) -> None:
        self._file.write(json.dumps(entry) + "\n")
