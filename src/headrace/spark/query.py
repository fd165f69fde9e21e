"""A running flow: its query started from its checkpoint, watched, restarted after trouble, shown as snapshots."""

from __future__ import annotations

import json
import threading
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from headrace.base.clock import micros
from headrace.base.duration import duration, millis, show
from headrace.base.errors import (
    DeclarationError,
    FlowFailed,
    GuaranteeRefused,
    HeadraceError,
    ModeRefused,
    RunError,
    StoreError,
)
from headrace.log.broker import Broker
from headrace.log.dead import ROOMY
from headrace.log.offsets import Place
from headrace.model.declared import Node, Read, ReadTable
from headrace.observe.growth import Limits
from headrace.observe.snapshot import FlowSnapshot, twin_name
from headrace.plan import modes
from headrace.plan.modes import Mode
from headrace.plan.plan import Exit, Flow, Plan
from headrace.spark import progress as progress_of
from headrace.spark.chain import Chain, fields
from headrace.spark.checkpoint import Checkpoint, Held
from headrace.spark.checkpoint_files import SparkFiles
from headrace.spark.clients import java_client
from headrace.spark.commits import Turn, ensure_commits
from headrace.spark.compile import Compiler
from headrace.spark.deciding import Following, deciding
from headrace.spark.log import commit_log, read_log, write_log
from headrace.spark.session import Spark
from headrace.spark.sizes import Sizes
from headrace.spark.storing import Storing, storing
from headrace.spark.totals import Totals
from headrace.spark.trouble import translate, translated
from headrace.stores.store import Store

FIRST_WAIT = timedelta(seconds=1)
LONGEST_WAIT = timedelta(minutes=1)
CALM = timedelta(minutes=1)
"""After so long without trouble a restart waits `FIRST_WAIT` again."""
POLL = timedelta(milliseconds=50)
HISTORY_BATCH = 200_000
LIVE_BATCH = 500_000
"""A backlog is read in pieces: a batch is one transaction, which the broker keeps open for ten minutes at most."""

# Trying again cannot help: the user has to do something first.
_FINAL = (DeclarationError, RunError)
_FINAL_CODES = (
    *("topic-missing", "topic-recreated", "records-lost", "state-version", "record-too-large"),
    *("table-mismatch", "store-key-missing", "store-lost"),
)

SLOW = timedelta(seconds=2)
"""A store that takes so long for a batch is shown as waited for."""

Tell = Callable[[FlowSnapshot], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Which part of the log a run reads, and from when on it emits. None: from the beginning; to the end. `time_ends`:
    where time goes when history is read; True: to its end, so that everything closes; False: nowhere."""

    start: datetime | None = None
    until: datetime | Mapping[Place, int] | None = None
    emit_from: datetime | None = None
    time_ends: datetime | bool = True


PACE: dict[Mode, str] = {"live": "0 s", "history": "0 s", "realtime": "5 min"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """All that a flow's query is made of."""

    plan: Plan
    flow: Flow
    mode: Mode
    broker: Broker
    checkpoint: Checkpoint
    stores: tuple[Store, ...] = ()  # as the flow has them, in that order
    only_stores: bool = False  # topics get nothing, not even dead letters: they have it
    span: Span = Span()
    max_records: int | None = None
    interval: str = ""  # how often a batch begins; in real time: how often state is made safe; "": as PACE has it
    twin: int = 1
    delay: timedelta = timedelta(0)  # before the first start: twins do not end their intervals together
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        modes.check(self.flow, self.mode)
        if self.pace < timedelta(0):
            raise ModeRefused(
                f"an interval of {show(self.pace)} is less than nothing",
                why="it says how often a batch begins",
                fix='say "10 s", or leave it out: then one begins as soon as the one before it is done',
            )

    @property
    def pace(self) -> timedelta:
        return duration(self.interval or PACE[self.mode])

    @property
    def id(self) -> str:
        return id_of(self.plan, self.flow)

    @property
    def weaker(self) -> dict[str, str]:
        """Topics that ask for less than exactly once."""
        exits = self.flow.exits
        return {e.target.name: e.guarantee for e in exits if not e.stored and e.guarantee != "exactly-once"}

    @property
    def commits(self) -> bool:
        """Whether batches are committed; real-time rows leave one by one, and a topic at least once needs no commit."""
        return self.mode != "realtime" and any(map(_committed, self.flow.exits))

    def source(self) -> dict[str, Any]:
        """What the log source is told (jvm/LogSpec.scala)."""
        history = self.mode == "history"
        limit = self.max_records or (HISTORY_BATCH if history else LIVE_BATCH)
        return {
            "topics": [_topic(step.node, self.flow.counts(step)) for step in self.flow.by_topic],
            "start": "earliest" if self.span.start is None else micros(self.span.start) // 1000,
            "until": _until(self.span.until),
            "aligned": history,
            "end_of_input": history and _ms(self.span.time_ends),
            "max_records": limit,
        }


def id_of(plan: Plan, flow: Flow) -> str:
    """Who writes, to the broker, in the topic of commits and to stores."""
    return f"{plan.app}/{plan.version}/{flow.name}"


def start(spark: Spark, job: Job, known: frozenset[str] | None = None) -> Any:
    """Starts the flow's query, inside `storing` if it writes stores and `deciding` if it decides; gives PySpark's
    StreamingQuery. `known`: the runs that it may take the flow from; None: from whoever has it."""
    client = java_client(job.broker)
    if job.mode == "realtime":
        _check_interval(spark, job)
    if job.commits:
        check_master(spark.session.sparkContext.master, job)
    with translated(spark.log):
        source = read_log(spark, job.source(), client)
        home, arrival = str(job.checkpoint.spark), job.mode == "realtime"
        records = Compiler(job.plan, job.flow, Chain(spark), home, arrival=arrival).records(source)
        if job.span.emit_from is not None:
            records = records.where((records["time"] >= micros(job.span.emit_from)) | records["time"].isNull())
        if job.only_stores:
            records = records.where(records["topic"].isNull())
        name = f"{job.plan.app}/{twin_name(job.flow.name, job.twin)}"
        writer = records.writeStream.outputMode("update").queryName(name)
        writer = writer.option("checkpointLocation", home)
        roomy = client | {"max.request.size": str(ROOMY)}
        if job.commits:
            commits = ensure_commits(job.broker, job.plan.app, job.checkpoint)
            writer = commit_log(
                writer,
                roomy,
                id=job.id,
                commits=commits,
                weaker=job.weaker,
                stores=[store.target.label for store in job.flow.stores],
                staged=str(job.checkpoint.staged),
                planned=max(SparkFiles(folder=job.checkpoint.spark).planned(), default=-1),
                known=known,
            )
        else:
            write_log(spark, writer, roomy, realtime=job.mode == "realtime")
        return _TRIGGERS[job.mode](writer, job).start()


_TRIGGERS: dict[str, Callable[[Any, Job], Any]] = {
    "live": lambda writer, job: writer.trigger(processingTime=f"{millis(job.pace)} milliseconds"),
    "history": lambda writer, _: writer.trigger(availableNow=True),
    "realtime": lambda writer, job: writer.trigger(realTime=f"{millis(job.pace)} milliseconds"),
}


def _check_interval(spark: Spark, job: Job) -> None:
    """Spark would refuse it too, each time it is started anew."""
    allowed = spark.session.conf.get("spark.sql.streaming.realTimeMode.minBatchDuration")  # "5000ms", or set: "5000"
    least = timedelta(milliseconds=int(allowed.removesuffix("ms")))
    if job.pace < least:
        raise ModeRefused(
            f"a real-time interval of {show(job.pace)} is too short",
            why=f"at its end rows wait until the state is safe; Spark allows no less than {show(least)}",
            fix=f'say "{show(least)}" or more; rows do not wait for the interval to end',
        )


def check_master(master: str, job: Job) -> None:
    """A batch is one transaction of one producer, and tasks on other machines could share neither it nor the folder of
    rows for stores."""
    if master != "local" and not master.startswith("local["):
        wanted = next(filter(_committed, job.flow.exits))
        weaker = "" if wanted.stored else 'say .to(..., guarantee="at-least-once"), or '
        raise GuaranteeRefused(
            f"{wanted.target.label} cannot be written {wanted.guarantee} on {master}",
            why="all tasks of a batch write in one commit, so they must run inside the driver",
            fix=f"{weaker}set spark.master to local[*]",
        )


def _committed(leaving: Exit) -> bool:
    return leaving.stored or leaving.guarantee != "at-least-once"


def _until(bound: datetime | Mapping[Place, int] | None) -> Any:
    if not isinstance(bound, Mapping):
        return bound and _ms(bound)
    offsets: dict[str, dict[int, int]] = {}
    for (topic, partition), offset in bound.items():
        offsets.setdefault(topic, {})[partition] = offset
    return offsets


def _ms(moment: datetime | bool) -> int | bool:
    return moment if isinstance(moment, bool) else micros(moment) // 1000


def _topic(read: Node, counts: bool) -> dict[str, Any]:
    assert isinstance(read, Read | ReadTable)
    event = read.event
    return {
        "topic": event.topic,
        "fields": fields(event.columns),
        "key": list(event.key),
        "id": event.id or None,
        "time": event.time or None,
        "disorder_ms": 0 if read.disorder is None else millis(read.disorder),
        "marked": read.disorder is None,
        "idle_ms": None if read.idle is None else millis(read.idle),
        "skew_ms": millis(read.skew),
        "table": isinstance(read, ReadTable),
        "changes": isinstance(read, ReadTable) and read.changes,
        "counts": counts,
    }


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
        wait = FIRST_WAIT
        try:
            self._stop.wait(self.job.delay.total_seconds())
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
        except Exception as broken:  # a fault of ours must not look like an end
            self.error = FlowFailed(f"{self.job.flow.name} broke: {broken!r}", why=traceback.format_exc())
        finally:
            if self.held is not None:
                self.held.close()
            try:
                self._show(state="failed" if self.error else "stopped", error=str(self.error or ""))
            finally:
                self._ended.set()

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
            while not query.awaitTermination(POLL.total_seconds()):
                self._look(query)
                self._look_at(stores)
                self._sizes.keep(datetime.now(UTC))
                if (stand := tuple(one.state for one in policies)) != self.snapshot.policies:
                    self._show(policies=stand)
                if self._stop.is_set():
                    query.stop()
            self._look(query)
            return None
        except Exception as broken:  # whatever ended the query: Spark's many kinds
            return stores.error or translate(broken, self.spark.log, alive=self.spark.healthy())
        finally:
            # Whatever went wrong here, a query that nobody watches must not go on writing.
            with suppress(Exception):  # the JVM may be gone, and the query with it
                if query.isActive:
                    query.stop()

    def _look(self, query: Any) -> None:
        """Takes in every batch that has ended since the last look."""
        last = query.lastProgress
        if last is None or not self._is_new(last):
            return
        # Spark gives the last hundred as text each time: asked for only if some ended unseen.
        fresh = [last] if last.batchId == self._batch + 1 else [p for p in query.recentProgress if self._is_new(p)]
        self._batch = fresh[-1].batchId
        self._totals.take(self.spark.jvm.Counters.take(str(query.runId)), ended=self._batch)
        for progress in fresh:
            self._take(json.loads(progress.json))

    def _look_at(self, stores: Storing) -> None:
        """A store that takes long is shown: until it has the batch, nothing moves."""
        waits, now = stores.waits, datetime.now(UTC)
        if waits is None or now - waits.since < SLOW or now - (self.snapshot.at or now) < SLOW:
            return
        error = f"{self.job.flow.stores[waits.store].target.label} has not taken batch {waits.batch}"
        behind = progress_of.measured(self.job.broker, self.snapshot.partitions)
        self._show(state="waiting", error=error, since=self.snapshot.since or waits.since, partitions=behind)

    def _is_new(self, progress: Any) -> bool:
        """Of a batch that ran: a query with nothing to do tells the number of its next one now and then."""
        return progress.batchId > self._batch and "addBatch" in progress.durationMs

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
