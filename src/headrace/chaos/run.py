"""A run of the harness: faults by their schedule, then everything is healed, drained and checked."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path

from headrace.base.settings import Settings
from headrace.chaos import check
from headrace.chaos.books import Books
from headrace.chaos.history import History
from headrace.chaos.outputs import Outputs, Reader
from headrace.chaos.rig import Rig
from headrace.chaos.schedule import Planned, schedule
from headrace.chaos.verdict import Suffered, Verdict
from headrace.chaos.watch import Watch
from headrace.chaos.workload import bank
from headrace.log.follow import Follower

Tell = Callable[[str], None]

RATE = 400
"""Transfers a second, beside bursts."""
_FIRST_COMMIT = 300.0
_RECOVERY = 240.0
_DRAIN = 600.0
_QUIET = 90.0
"""Seconds until it is given up: the system no longer moves."""


def run(
    settings: Settings,
    *,
    seed: int,
    minutes: float = 5,
    faults: int | None = None,
    wanted: Sequence[str] = (),
    without: Sequence[str] = (),
    rate: int = RATE,
    home: Path | None = None,
    tell: Tell = lambda _: None,
) -> Verdict:
    """Runs until the time is over, or so many faults have been. The home directory is kept if something is violated."""
    place = Path(tempfile.mkdtemp(prefix="headrace-chaos-")) if home is None else home
    with ExitStack() as opened:
        history = History(place / "history.jsonl")
        opened.callback(history.close)
        tell(f"seed {seed}, home {place}")
        rig = Rig(place, settings, history)
        opened.callback(rig.close)
        rig.start(seed=seed, rate=rate)
        watch = Watch(rig)
        verdict = _Run(rig, watch, tell).all(seed, islice(schedule(seed, wanted, without=without), faults), minutes)
    if verdict.sound and home is None:
        shutil.rmtree(place, ignore_errors=True)
    return verdict


class _Run:
    def __init__(self, rig: Rig, watch: Watch, tell: Tell) -> None:
        self._rig, self._watch, self._tell = rig, watch, tell
        self._history = rig.history
        self._remarks: list[str] = []

    def all(self, seed: int, planned: Sequence[Planned] | islice[Planned], minutes: float) -> Verdict:
        first = self._recovered(0, _FIRST_COMMIT)
        self._tell(f"{self._history.now:7.1f}  first commit" if first else "no commit came at all")
        suffered: list[Suffered] = []
        deadline = time.monotonic() + minutes * 60
        for one in planned:
            if time.monotonic() > deadline or first is None:
                break
            time.sleep(one.after)
            suffered.append(self._suffer(one))
        if suffered:
            self._recovered(suffered[-1].since, _RECOVERY)
        suffered = [replace(one, recovery=self._waited(one.since)) for one in suffered]
        findings = self._check(suffered if first is not None else None)
        return Verdict(
            seed=seed,
            seconds=self._history.now,
            transfers=self._rig.traffic.sent,
            suffered=tuple(suffered),
            findings=findings,
            remarks=tuple(self._remarks),
        )

    def _suffer(self, one: Planned) -> Suffered:
        self._history.note("fault", str(one))
        at = self._history.now
        since, about = one.fault.inject(self._rig, one.chance)
        said = ""
        if one.fault.alone:
            wait = self._recovered(since, _RECOVERY)
            said = "did not recover" if wait is None else f"recovered in {wait:.1f} s"
            if wait is None:
                self._rig.up()
                self._rig.restart_driver()
        self._history.note("recovery", f"{one}: {about}: {said}")
        self._tell(f"{at:7.1f}  {one}  {about}  {said}".rstrip())
        if "SKIPPED" in about:
            self._remarks.append(f"{one.fault.name}: {about}")
        return Suffered(planned=one, since=since, about=about)

    def _recovered(self, since: float, patience: float) -> float | None:
        """Waits for the first new commit. A driver that ends by itself is started again, as a service would be."""

        def commit() -> bool:
            if not self._rig.driver.alive:
                self._remark(f"the driver ended by itself: {self._rig.driver.words(600)}")
                time.sleep(1)
                self._rig.restart_driver()
            return self._rig.recovered(since) is not None

        self._rig.until(commit, patience)
        return self._waited(since)

    def _waited(self, since: float, flow: str = "transfers") -> float | None:
        """Seconds to the first new commit."""
        seen = self._rig.recovered(since, flow)
        return None if seen is None else seen.at - since

    def _remark(self, text: str) -> None:
        self._remarks.append(text)
        self._history.note("remark", text, "failed")
        self._tell(text)

    # -- the end

    def _check(self, suffered: list[Suffered] | None) -> tuple[check.Finding, ...]:
        """Everything is healed, what was sent is read to its end, and then looked at."""
        rig = self._rig
        rig.up()
        closed = rig.traffic.close() - timedelta(minutes=1)
        books = self._books()
        self._tell(f"{self._history.now:7.1f}  draining {rig.traffic.sent:,} transfers")
        reader = Reader(rig.broker)
        rig.until(lambda: self._drained(_results(books, reader.refresh(), closed)), _DRAIN, every=1)
        if rig.driver.stop():
            self._remark(f"the driver did not end as it should: {rig.driver.words(600)}")
        outputs, stored = reader.refresh(), rig.stores.read()
        reader.close()
        self._watch.close()
        waits = [(str(one.planned), one.recovery) for one in suffered] if suffered is not None else [("start", None)]
        # The other flow is not waited for, but it must have gone on. After the last fault it may have nothing to do.
        waits += [(f"{one.planned} in accounts", self._waited(one.since, "accounts")) for one in (suffered or ())[:-1]]
        return (
            check.check_sends(books, self._history.acknowledged),
            *_results(books, outputs, closed),
            check.check_bank(books, outputs, self._watch.sums),
            check.check_stores(books, outputs, stored),
            check.check_tokens(self._history.commits, self._states(), stored.notes),
            check.check_fences(self._history.calls),
            check.check_liveness(waits),
        )

    def _drained(self, results: Sequence[check.Finding]) -> bool:
        """Everything has come, or nothing comes any more."""
        last = self._history.commits[-1].at if self._history.commits else 0
        return all(finding.sound for finding in results) or self._history.now - last > _QUIET

    def _books(self) -> Books:
        books = Books()
        for topic, take in (("chaos-transfers", books.take_transfers), ("chaos-accounts", books.take_accounts)):
            follower = Follower(self._rig.broker, topic)
            take(follower.refresh())
            follower.close()
        return books

    def _states(self) -> dict[str, int]:
        """The last batch that each checkpoint has planned: it may be written and not yet noted when a driver stops."""
        states = self._rig.state / bank.name / bank.version
        return {
            f"{bank.name}/{bank.version}/{flow.name}": max(
                (int(file.name) for file in (flow / "spark" / "offsets").iterdir() if file.name.isdigit()), default=-1
            )
            for flow in states.iterdir()
        }


def _results(books: Books, outputs: Outputs, closed: datetime) -> tuple[check.Finding, ...]:
    return (
        check.check_ledger(books, outputs),
        check.check_windows(books, outputs, closed=closed),
        check.check_versions(outputs),
        check.check_view(books, outputs),
    )
