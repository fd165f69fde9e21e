"""A topic as declared: its name and how long, how wide and how it keeps records."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta

from headrace.base.duration import duration, show
from headrace.base.errors import BadTopic
from headrace.base.where import here

_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """Where records live. What is None is left to the broker's settings; retention None keeps records for ever (F3).

    >>> str(Topic(name="payments", partitions=6, retention=timedelta(days=7)))
    'payments: 6 partitions, kept 7 d'
    """

    name: str
    partitions: int | None = None
    retention: timedelta | None = None
    compact: bool = False
    lag: timedelta | None = None  # how long a compacted topic keeps old values of a key too
    replication: int | None = None
    largest: int | None = None  # bytes of a record
    event: type | None = None

    def __post_init__(self) -> None:
        check_name(self.name)
        for what, count in (("partitions", self.partitions), ("replication", self.replication)):
            if count is not None and (isinstance(count, bool) or not isinstance(count, int) or count < 1):
                raise BadTopic(
                    f"topic {self.name!r} cannot have {what}={count!r}",
                    why="it is a count, at least 1",
                    fix=f"leave {what} out to take the default",
                    where=here(),
                )
        if self.retention is not None and duration(self.retention) <= timedelta(0):
            raise BadTopic(
                f"topic {self.name!r} cannot keep records for {show(self.retention)}",
                why="a retention is a time, longer than nothing",
                fix="leave retention out to keep records for ever",
                where=here(),
            )

    @property
    def label(self) -> str:
        """What plans and errors call it; those of stores name their kind too."""
        return self.name

    def __str__(self) -> str:
        width = "default partitions" if self.partitions is None else f"{self.partitions} partitions"
        policy = "latest value per key, " if self.compact else ""
        return f"{self.name}: {width}, {policy}kept {'for ever' if self.retention is None else show(self.retention)}"


def check_name(name: str) -> str:
    """The name, if Kafka can have a topic of it."""
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name in (".", ".."):
        raise BadTopic(
            f"{name!r} cannot name a topic",
            why="Kafka takes 1 to 249 of the letters a-z, A-Z, 0-9, '.', '_' and '-'",
            fix='write it like "card-spend"',
            where=here(),
        )
    return name
