"""Frontiers and the watermark: how far event time has come, from what each partition has shown (rules T2-T4, T7)."""

from __future__ import annotations

from dataclasses import dataclass, field

from headrace.base.duration import millis
from headrace.model.declared import Node, Read, ReadTable
from headrace.plan.plan import Flow, topic_of
from headrace.steps.row import MILLI


@dataclass(slots=True)
class Partition:
    """`top`: the greatest event time read (or mark), micros. `seen`: the clock, in ms, when it last had something."""

    seen: int
    top: int | None = None


@dataclass(slots=True)
class StreamFrontier:
    """One stream. Marked streams (rule T7) follow marks alone; they are never idle, else a row could be behind."""

    disorder: int  # ms
    idle: int | None  # ms
    skew: int  # ms
    marked: bool
    partitions: dict[int, Partition] = field(default_factory=dict)

    def row(self, partition: int, time: int, clock: int) -> None:
        """A row was read. One dated too far ahead moves nothing (rule T2)."""
        part = self._partition(partition, clock)
        if not self.marked and time <= (clock + self.skew) * MILLI:
            part.top = time if part.top is None else max(part.top, time)

    def mark(self, partition: int, time: int, clock: int) -> None:
        """A producer says: nothing older than `time` follows here."""
        part = self._partition(partition, clock)
        if self.marked:
            part.top = time if part.top is None else max(part.top, time)

    def _partition(self, partition: int, clock: int) -> Partition:
        part = self.partitions.setdefault(partition, Partition(clock))
        part.seen = clock
        return part

    def silent_since(self, clock: int) -> int | None:
        """The clock at which the last of its partitions became idle, if all are; else None."""
        if self.idle is None or self.marked:
            return None
        since = max(part.seen + self.idle for part in self.partitions.values())
        return since if since <= clock else None

    def frontier(self, clock: int) -> int | None:
        """The least `top` over the partitions that are not idle, micros; None while one of them has shown nothing."""
        tops = [part.top for part in self.partitions.values() if not self._idle(part, clock)]
        known = [top for top in tops if top is not None]
        return min(known) if known and len(known) == len(tops) else None

    def _idle(self, part: Partition, clock: int) -> bool:
        return self.idle is not None and not self.marked and clock - part.seen >= self.idle

    @property
    def greatest(self) -> int | None:
        return max((part.top for part in self.partitions.values() if part.top is not None), default=None)


class Watermark:
    """W of a flow: the least over its streams of (frontier - disorder); idle streams leave the minimum.

    When everything is idle, the frontier runs on at clock speed, from the greatest event time, beginning at the moment
    when the last partition became idle.
    """

    def __init__(self, flow: Flow, clock: int, partitions: dict[str, int]) -> None:
        self._streams: dict[str, list[StreamFrontier]] = {}
        for step in flow.sources:
            if flow.counts(step):
                topic = topic_of(step)
                count = partitions.get(topic, 1)
                self._streams.setdefault(topic, []).append(_stream(step.node, clock, count))
        self.value: int | None = None

    def row(self, topic: str, partition: int, time: int, clock: int) -> None:
        for stream in self._streams.get(topic, ()):
            stream.row(partition, time, clock)

    def mark(self, topic: str, partition: int, time: int, clock: int) -> None:
        for stream in self._streams.get(topic, ()):
            stream.mark(partition, time, clock)

    def at(self, clock: int) -> int | None:
        """The watermark now, in ms; it never goes back."""
        found = self._now(clock)
        if found is not None and (self.value is None or found > self.value):
            self.value = found
        return self.value

    def _now(self, clock: int) -> int | None:
        streams = [stream for group in self._streams.values() for stream in group]
        active = [stream for stream in streams if stream.silent_since(clock) is None]
        if not active:
            return self._run_on(streams, clock)
        frontiers = [(stream.frontier(clock), stream.disorder) for stream in active]
        known = [frontier // MILLI - disorder for frontier, disorder in frontiers if frontier is not None]
        return min(known) if len(known) == len(frontiers) else None

    def _run_on(self, streams: list[StreamFrontier], clock: int) -> int | None:
        greatest = max((stream.greatest for stream in streams if stream.greatest is not None), default=None)
        if greatest is None:
            return None
        since = max(stream.silent_since(clock) or clock for stream in streams)
        return greatest // MILLI + (clock - since) - max(stream.disorder for stream in streams)


def _stream(node: Node, clock: int, partitions: int) -> StreamFrontier:
    assert isinstance(node, Read | ReadTable)
    return StreamFrontier(
        disorder=0 if node.disorder is None else millis(node.disorder),
        idle=None if node.idle is None else millis(node.idle),
        skew=millis(node.skew),
        marked=node.disorder is None,
        partitions={number: Partition(clock) for number in range(partitions)},
    )
