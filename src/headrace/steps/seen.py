"""What a vector was told of, as text: of each partition the last row, and a sum over all rows that tells sets apart.

`labels/0@4 payments/3@17 #9c01f3a2b4d5e6f7`: of partition 0 of labels rows up to offset 4, of partition 3 of payments
up to 17. Rows of one partition that come by way of other keys may pass each other; the sum says whether one below the
last was not there yet. Rows that a step made have no place in the log: they are in the sum alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from headrace.steps.algebra import Growing
from headrace.steps.hll import hash64
from headrace.steps.row import Order, Row

_MASK = (1 << 64) - 1
_NEWEST = 32
"""Rows that others may have passed on their way: the newest of a key. All subsets of so many can be looked through."""


class Place(NamedTuple):
    """Where a row came from. `mark`: its part of the sum."""

    source: int
    partition: int
    offset: int
    mark: int


class Seen(NamedTuple):
    """What a vector was told of, as its column `seen_<name>` says. `last`: the last offset by (topic, partition).

    >>> Seen.read("labels/0@4 payments/3@17 #9c01f3a2b4d5e6f7").has("payments", 3, 12)
    True
    """

    last: dict[tuple[str, int], int]
    sum: int

    @classmethod
    def read(cls, text: str) -> Seen:
        """The text, taken apart."""
        *places, total = text.split(" ")
        last = {}
        for one in places:
            partition, offset = one.rsplit("/", 1)[1].split("@")
            last[one.rsplit("/", 1)[0], int(partition)] = int(offset)
        return cls(last, int(total.removeprefix("#"), 16))

    def has(self, topic: str, partition: int, offset: int) -> bool:
        """Whether a row stands no later than the last of its partition that was seen."""
        return offset <= self.last.get((topic, partition), -1)

    def more_than(self, other: Seen, causes: Iterable[str]) -> tuple[str, ...]:
        """Which of these rows (`topic/partition/offset`, the newest last) are in this one and not in the other; none if
        it would have to be one that is older than the newest 32."""
        newest = list(causes)[-_NEWEST:]
        older, newer = _sums(newest[: len(newest) // 2]), _sums(newest[len(newest) // 2 :])
        for total, some in newer.items():
            rest = older.get((self.sum - other.sum - total) & _MASK)
            if rest is not None:
                return (*rest, *some)
        return ()


def _sums(causes: Iterable[str]) -> dict[int, tuple[str, ...]]:
    """Each subset by its sum. Two halves of these meet in the middle: 65,536 sums stand for four billion subsets."""
    found: dict[int, tuple[str, ...]] = {0: ()}
    for cause in causes:
        found |= {(total + mark(cause)) & _MASK: (*some, cause) for total, some in found.items()}
    return found


def place(row: Row) -> Place:
    _, source, partition, offset, _ = row.order
    return Place(source, partition, offset, mark(row.cause))


def mark(cause: str) -> int:
    """Of a row of the log, `topic/partition/offset`; of a row that a step made, its id."""
    return hash64(cause.encode())


Marks = tuple[dict[tuple[int, int], int], int]  # the last offset by source and partition, the sum


class Marking(Growing):
    """The rows of a vector, put together like the values of an aggregate. State: Marks."""

    def empty(self) -> Marks:
        return {}, 0

    def add(self, state: Marks, value: Place, order: Order) -> Marks:
        return self.merge(state, ({(value.source, value.partition): value.offset}, value.mark))

    def merge(self, into: Marks, other: Marks) -> Marks:
        last, total = into
        for at, offset in other[0].items():
            last[at] = max(last.get(at, 0), offset)
        return last, (total + other[1]) & _MASK

    def value(self, state: Marks) -> Marks:
        return state


def marks(places: Iterable[Place]) -> Marks:
    total = MARKING.empty()
    for one in places:
        total = MARKING.add(total, one, (0, 0, 0, 0, ""))
    return total


MARKING = Marking()


def text(topics: Sequence[str], *parts: Marks) -> str:
    """What these say together. `topics`: by source number, sorted."""
    last, total = MARKING.empty()
    for part in parts:
        last, total = MARKING.merge((last, total), part)
    logged = sorted(item for item in last.items() if item[0][0] < len(topics))
    said = [f"{topics[source]}/{partition}@{offset}" for (source, partition), offset in logged]
    return " ".join([*said, f"#{total:016x}"])
