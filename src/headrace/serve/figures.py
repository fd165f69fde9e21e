"""Figures of a service: counts, latencies, what is in flight; as Prometheus reads them."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

BOUNDS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100, 150, 200, 300, 500, 1000)
"""Upper bounds of the latency classes, in milliseconds; one more class is above them all."""
_RECENT = 60
"""Seconds over which the page's quantiles and histogram look back."""


class Latencies:
    """How many took how long."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS) + 1)
        self.total = 0.0

    def add(self, milliseconds: float) -> None:
        self.counts[bisect_left(BOUNDS, milliseconds)] += 1
        self.total += milliseconds


def quantile(counts: Sequence[int], share: float) -> float | None:
    """The latency that this share stays under, straight between the bounds of its class.

    >>> quantile([0, 10] + [0] * 22, 0.5)
    1.5
    """
    wanted, below = share * sum(counts), 0
    if not wanted:
        return None
    for place, count in enumerate(counts):
        if below + count >= wanted:
            low = BOUNDS[place - 1] if place else 0
            high = BOUNDS[place] if place < len(BOUNDS) else BOUNDS[-1]
            return round(low + (high - low) * (wanted - below) / count, 2)
        below += count
    return None


@dataclass(slots=True)
class Figures:
    """Counted by one thread, that of the event loop."""

    requests: Counter[int] = field(default_factory=Counter)
    """By HTTP status."""
    decisions: Counter[str] = field(default_factory=Counter)
    """First answers of the flow, by decision; asked for here or not."""
    degraded: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By why the flow did not answer in time, and who spoke instead."""
    twins: Counter[str] = field(default_factory=Counter)
    late: Counter[str] = field(default_factory=Counter)
    """The flow's answers after a degraded one: did they say the same?"""
    repeats: int = 0
    unreadable: int = 0
    """Records on the followed topics that are no JSON rows with an id."""
    in_flight: int = 0
    waiting: int = 0
    """Reviews that wait for a person, once they are read from the log."""
    fallen: int = 0
    """Reviews that the queue had no room for."""
    latencies: Latencies = field(default_factory=Latencies)
    _seconds: deque[list[int]] = field(default_factory=lambda: deque([[0] * (len(BOUNDS) + 1)], maxlen=_RECENT))

    def took(self, milliseconds: float) -> None:
        self.latencies.add(milliseconds)
        self._seconds[-1][bisect_left(BOUNDS, milliseconds)] += 1

    def next_second(self) -> None:
        self._seconds.append([0] * (len(BOUNDS) + 1))

    def recent(self, seconds: int = _RECENT) -> list[int]:
        """Counts by latency class over the last seconds."""
        return [sum(column) for column in zip(*list(self._seconds)[-seconds:], strict=True)]

    def prometheus(self) -> str:
        """The text that `/metrics` gives."""
        lines = [
            *_counter("headrace_requests", "Requests by HTTP status.", ("code",), _ones(self.requests)),
            *_counter("headrace_decisions", "Answers of the flow.", ("decision",), _ones(self.decisions)),
            *_counter("headrace_degraded", "Answers without the flow.", ("why", "by"), self.degraded.items()),
            *_counter("headrace_twin_answers", "Further answers for an id.", ("said",), _ones(self.twins)),
            *_counter("headrace_late_answers", "Answers after a degraded one.", ("said",), _ones(self.late)),
            *_counter("headrace_repeated", "Events that were asked about again.", (), [((), self.repeats)]),
            *_counter("headrace_unreadable", "Records that could not be read.", (), [((), self.unreadable)]),
            *_counter("headrace_reviews_fallen", "Reviews without room in the queue.", (), [((), self.fallen)]),
            *_gauge("headrace_reviews_waiting", "Reviews that wait for a person.", self.waiting),
            *_gauge("headrace_in_flight", "Events that wait for an answer.", self.in_flight),
            *self._histogram("headrace_decide_seconds", "From request to answer."),
        ]
        return "\n".join(lines) + "\n"

    def _histogram(self, name: str, says: str) -> Iterable[str]:
        yield from (f"# HELP {name} {says}", f"# TYPE {name} histogram")
        below = 0
        for bound, count in zip(BOUNDS, self.latencies.counts, strict=False):
            below += count
            yield f'{name}_bucket{{le="{bound / 1000:g}"}} {below}'
        everything = sum(self.latencies.counts)
        yield f'{name}_bucket{{le="+Inf"}} {everything}'
        yield f"{name}_sum {self.latencies.total / 1000:.6f}"
        yield f"{name}_count {everything}"


def _ones(counter: Counter[int] | Counter[str]) -> list[tuple[tuple[str, ...], int]]:
    return [((str(value),), count) for value, count in counter.items()]


def _counter(
    name: str, says: str, labels: tuple[str, ...], values: Iterable[tuple[tuple[str, ...], int]]
) -> Iterable[str]:
    yield from (f"# HELP {name}_total {says}", f"# TYPE {name}_total counter")
    for told, count in sorted(values):
        named = ",".join(f'{label}="{_escaped(value)}"' for label, value in zip(labels, told, strict=True))
        yield f"{name}_total{{{named}}} {count}" if named else f"{name}_total {count}"


def _gauge(name: str, says: str, value: int) -> Iterable[str]:
    return (f"# HELP {name} {says}", f"# TYPE {name} gauge", f"{name} {value}")


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
