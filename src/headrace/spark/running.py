"""A running flow: its query watched, restarted after trouble, shown as snapshots."""

from __future__ import annotations

import json
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from headrace.base.duration import millis
from headrace.base.errors import DeclarationError, FlowFailed, HeadraceError, RunError, StoreError
from headrace.observe.snapshot import FlowSnapshot
from headrace.spark import progress as progress_of
from headrace.spark.checkpoint import Held
from headrace.spark.commits import Turn
from headrace.spark.deciding import Following, deciding
from headrace.spark.job import Job
from headrace.spark.query import start
from headrace.spark.session import Spark
from headrace.spark.sizes import Sizes
from headrace.spark.storing import Storing, storing
from headrace.spark.totals import Totals
from headrace.spark.trouble import translate, translated

FIRST_WAIT = timedelta(seconds=1)
LONGEST_WAIT = timedelta(minutes=1)
CALM = timedelta(minutes=1)
"""After so long without trouble a restart waits `FIRST_WAIT` again."""
POLL = timedelta(milliseconds=50)

# Trying again cannot help: the user has to do something first.
_FINAL = (DeclarationError, RunError)
_FINAL_CODES = (
    *("topic-missing", "topic-recreated", "records-lost", "state-version", "record-too-large"),
    *("table-mismatch", "store-key-missing", "store-lost"),
)

SLOW = timedelta(seconds=2)
"""A store that takes so long for a batch is shown as waited for."""

Tell = Callable[[FlowSnapshot], None]


@dataclass(slots=True)
class Running:
    """A flow under watch, on a thread of its own. A query that fails is started again, each time a little later."""

    spark: Spark
    job: Job
    tell: Tell
    snapshot: FlowSnapshot = field(init=False)
    error: HeadraceError | None = None
    held: Held | None = None
    """The checkpoint, if its lock was taken before Spark was started; else it is taken here."""
    _stop: threading.Event = field(default_factory=threading.Event)
    # Not the thread's own join: one that Ctrl-C interrupts takes the thread for ended (Python 3.11).
    _ended: threading.Event = field(default_factory=threading.Event)
    _turn: Turn = field(init=False)
    _totals: Totals = field(init=False)
    _sizes: Sizes = field(init=False)
    _batch: int = -1

    def __post_init__(self) -> None:
        self.held = self.held or self.job.checkpoint.open(self.job.flow)
        self._turn = Turn(self.job.broker, self.job.plan.app, self.job.id)
        self._totals = Totals(self.job.flow, self.job.checkpoint.counts_file)
        self._sizes = Sizes(self.job.checkpoint.sizes_file, self.job.limits)
        job, plan = self.job, self.job.plan
        self.snapshot = FlowSnapshot(
            app=plan.app, version=plan.version, flow=job.flow.name, twin=job.twin, mode=job.mode, state="starting"
        )
        threading.Thread(target=self._watch, name=f"flow {self.job.flow.name}", daemon=True).start()

    def stop(self) -> None:
        """Ends the query and waits for it. A batch that runs is broken off; the next start runs it again."""
        self._stop.set()
        self._ended.wait()

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Until the flow has ended by itself; whether it has."""
        return self._ended.wait(None if timeout is None else timeout.total_seconds())

    # -- the thread

    def _watch(self) -> None:
        try:
            with _fenced(self.spark, str(self.job.checkpoint.fence_file)):
                self._again_and_again()
                if self.error is None:  # stopped in order: nobody need wait for it
                    self.job.checkpoint.answering.unlink(missing_ok=True)
        except HeadraceError as refused:
            self.error = refused
        except Exception as broken:  # a fault of ours must not look like an end
            self.error = FlowFailed(f"{self.job.flow.name} broke: {broken!r}", why=traceback.format_exc())
        finally:
            if self.held is not None:
                self.held.close()
            try:
                self._show(state="failed" if self.error else "stopped", error=str(self.error or ""))
            finally:
                self._ended.set()

    def _again_and_again(self) -> None:
        """Until it has ended as it should, or trying again cannot help."""
        wait = FIRST_WAIT
        while not self._stop.is_set():
            began = datetime.now(UTC)
            trouble = self._attempt()
            if trouble is None:
                break
            if isinstance(trouble, _FINAL) or trouble.code in _FINAL_CODES or not self.spark.healthy():
                self.error = trouble
                break
            wait = FIRST_WAIT if datetime.now(UTC) - began > CALM else wait
            now, behind, restarts = datetime.now(UTC), self.snapshot.partitions, self.snapshot.restarts + 1
            if isinstance(trouble, StoreError):  # a broker in trouble would only cost the time to recover
                behind = progress_of.measured(self.job.broker, behind)
            told = {"error": str(trouble), "since": self.snapshot.since or now, "next_try": now + wait}
            self._show(state="restarting", restarts=restarts, partitions=behind, **told)
            self._stop.wait(wait.total_seconds())
            wait = min(wait * 2, LONGEST_WAIT)

    def _attempt(self) -> HeadraceError | None:
        """One life of the query; None when it ended as it should."""
        job = self.job
        try:
            known = self._turn.check() if job.commits else None
            with (
                storing(self.spark, job.stores, job.id, job.checkpoint.staged) as stores,
                deciding(self.spark, job.broker, job.flow, str(job.checkpoint.spark)) as policies,
            ):
                return self._live(start(self.spark, job, known), stores, policies)
        except HeadraceError as broken:
            return broken

    def _live(self, query: Any, stores: Storing, policies: tuple[Following, ...]) -> HeadraceError | None:
        self._turn.took(str(query.runId))
        self._totals.forget_open()
        self._show(state="running", error="", next_try=None)
        try:
            while (ended := self._watched(query)) is not None:
                self._take_in(query, ended)
                self._look_at(stores)
                self._sizes.keep(datetime.now(UTC))
                if (stand := tuple(one.state for one in policies)) != self.snapshot.policies:
                    self._show(policies=stand)
                if self._stop.is_set():
                    query.stop()
            self._take_in(query, self.spark.jvm.Watch.ended(query._jsq, self._batch))
            return None
        except Exception as broken:  # whatever ended the query: Spark's many kinds
            return stores.error or translate(broken, self.spark.log, alive=self.spark.healthy())
        finally:
            # Whatever went wrong here, a query that nobody watches must not go on writing.
            with suppress(Exception):  # the JVM may be gone, and the query with it
                if query.isActive:
                    query.stop()
                self.spark.jvm.Counters.take(str(query.runId))  # of a batch that did not end: nobody asks for it again

    def _watched(self, query: Any) -> str | None:
        """Which batches have ended since the last look; None when the query has."""
        ended: str | None = self.spark.jvm.Watch.look(query._jsq, self._batch, millis(POLL))
        return ended

    def _take_in(self, query: Any, ended: str) -> None:
        if not (batches := json.loads(ended)):
            return
        self._batch = batches[-1]["batchId"]
        self._totals.take(self.spark.jvm.Counters.take(str(query.runId)), ended=self._batch)
        for progress in batches:
            self._take(progress)

    def _look_at(self, stores: Storing) -> None:
        """A store that takes long is shown: until it has the batch, nothing moves."""
        waits, now = stores.waits, datetime.now(UTC)
        if waits is None or now - waits.since < SLOW or now - (self.snapshot.at or now) < SLOW:
            return
        error = f"{self.job.flow.stores[waits.store].target.label} has not taken batch {waits.batch}"
        behind = progress_of.measured(self.job.broker, self.snapshot.partitions)
        self._show(state="waiting", error=error, since=self.snapshot.since or waits.since, partitions=behind)

    def _take(self, progress: dict[str, Any]) -> None:
        source = progress["sources"][0] if progress["sources"] else {}
        operators = progress.get("stateOperators", ())
        kept = self._totals.state()
        self._show(
            state="running",
            error="",
            batch=progress["batchId"],
            rows=progress["numInputRows"],
            rows_per_second=progress.get("processedRowsPerSecond", 0.0),
            batch_ms=progress.get("durationMs", {}).get("triggerExecution", 0),
            watermark=progress_of.moment(source.get("metrics", {}).get("watermark")),
            partitions=progress_of.partitions(source),
            counts=self._totals.counts(),
            kept=kept,
            state_bytes=sum(o["memoryUsedBytes"] for o in operators),
            growth=self._sizes.take(progress_of.size(kept)),
            since=None,
        )

    def _show(self, **changed: Any) -> None:
        self.snapshot = replace(self.snapshot, at=datetime.now(UTC), **changed)
        self.tell(self.snapshot)


@contextmanager
def _fenced(spark: Spark, file: str) -> Iterator[None]:
    """While the JVM may write: whoever comes next waits for it, too."""
    with translated(spark.log):
        spark.jvm.Fence.take(file)
    try:
        yield
    finally:
        with suppress(Exception):  # the JVM may be gone, and what it held with it
            spark.jvm.Fence.give(file)
