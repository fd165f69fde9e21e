"""What a flow's query is made of: its part of the log, its mode and pace, its checkpoint, its stores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from headrace.base.clock import micros
from headrace.base.duration import millis, show
from headrace.base.errors import ModeRefused
from headrace.log.broker import Broker
from headrace.log.offsets import Place
from headrace.model.declared import Node, Read, ReadTable
from headrace.observe.growth import Limits
from headrace.plan import modes
from headrace.plan.modes import Mode
from headrace.plan.plan import Exit, Flow, Plan
from headrace.spark.chain import fields
from headrace.spark.checkpoint import Checkpoint
from headrace.stores.store import Store

HISTORY_BATCH = 200_000
LIVE_BATCH = 500_000
"""A backlog is read in pieces: a batch is one transaction, which the broker keeps open for ten minutes at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Which part of the log a run reads, and from when on it emits. None: from the beginning; to the end. `time_ends`:
    where time goes when history is read; True: to its end, so that everything closes; False: nowhere."""

    start: datetime | None = None
    until: datetime | Mapping[Place, int] | None = None
    emit_from: datetime | None = None
    time_ends: datetime | bool = True


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
    dry: bool = False  # nobody gets anything
    span: Span = Span()
    max_records: int | None = None
    pace: timedelta = timedelta(0)  # how often a batch begins; in real time: how often state is made safe
    twin: int = 1
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
        return self.mode != "realtime" and bool(self.committed) and not self.dry

    @property
    def committed(self) -> tuple[Exit, ...]:
        """Exits that rows leave by in a batch's one commit."""
        return tuple(e for e in self.flow.exits if e.stored or e.guarantee != "at-least-once")

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
        } | (self._interval() if self.mode == "realtime" else {})

    def _interval(self) -> dict[str, Any]:
        every, answering = millis(self.pace), str(self.checkpoint.answering)
        return {"interval": {"every_ms": every, "phase_ms": int(every * phase(self.twin)), "answering": answering}}


def phase(twin: int) -> float:
    """Where in the interval a twin ends its own: apart from all the others, however many they are.

    >>> [phase(twin) for twin in (1, 2, 3, 4, 5)]
    [0.0, 0.5, 0.25, 0.75, 0.125]
    """
    bits = f"{twin - 1:b}"
    return sum((bit == "1") * 0.5 ** (place + 1) for place, bit in enumerate(reversed(bits)))


def id_of(plan: Plan, flow: Flow) -> str:
    """Who writes, to the broker, in the topic of commits and to stores."""
    return f"{plan.app}/{plan.version}/{flow.name}"


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
