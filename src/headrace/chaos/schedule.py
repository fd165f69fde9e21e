"""The schedule: which fault comes when, all of it from a seed, so that a run can be printed, and repeated."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from headrace.chaos.faults import FAULTS, Fault

_CALM = (0.2, 1.5)
"""Seconds between a recovery and the next fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A fault to come. What it leaves open (how long, which file) it takes from `chance`, which is the seed's too."""

    number: int
    fault: Fault
    after: float
    chance: random.Random

    def __str__(self) -> str:
        return f"{self.number:>4}  {self.fault.name}"


def schedule(seed: int, wanted: Sequence[str] = (), *, without: Sequence[str] = ()) -> Iterator[Planned]:
    """Faults without end: those wanted by name in their order, over and over; else any, the costly ones seldom."""
    chance = random.Random(f"schedule {seed}")
    names = [name for name in FAULTS if name not in without]
    weights = [FAULTS[name].weight for name in names]
    for number in count(1):
        name = wanted[(number - 1) % len(wanted)] if wanted else chance.choices(names, weights)[0]
        yield Planned(
            number=number,
            fault=FAULTS[name],
            after=chance.uniform(*_CALM),
            chance=random.Random(f"fault {seed} {number}"),
        )
