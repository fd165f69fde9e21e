"""Advice on partition counts: enough for the throughput, and one for every consumer."""

from __future__ import annotations

import math
from dataclasses import dataclass

from headrace.base.errors import UsageError

PER_PARTITION_MB = 10
"""What one partition carries without effort; the rule of thumb the advice rests on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """A number of partitions, and why."""

    partitions: int
    for_throughput: int
    for_consumers: int

    @property
    def because(self) -> str:
        """The reckoning in words."""
        winner = "throughput" if self.for_throughput >= self.for_consumers else "the number of consumers"
        return (
            f"throughput asks for {self.for_throughput} (at {PER_PARTITION_MB} MB/s each), "
            f"consumers for {self.for_consumers} (a partition is read by one member of a group); "
            f"{winner} decides. The count cannot shrink, and growing it moves keys: leave room now."
        )


def partitions(*, throughput_mb: float, consumers: int) -> Advice:
    """max(throughput / 10 MB, consumers), rounded up.

    >>> partitions(throughput_mb=40, consumers=6).partitions
    6
    """
    if throughput_mb < 0 or consumers < 0 or not math.isfinite(throughput_mb):
        raise UsageError(
            f"no advice for {throughput_mb} MB/s and {consumers} consumers",
            why="both are amounts, zero or more",
            fix="for example --throughput 40MB --consumers 6",
        )
    needed = math.ceil(throughput_mb / PER_PARTITION_MB)
    return Advice(partitions=max(needed, consumers, 1), for_throughput=needed, for_consumers=consumers)
