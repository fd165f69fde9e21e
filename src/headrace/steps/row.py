"""What steps take and give: rows, verdicts on rows, window results."""

from __future__ import annotations

from typing import Any, NamedTuple

MILLI = 1_000  # micros in a millisecond: times are micros, watermarks and clocks are ms
END = 253_402_300_799_999
"""The watermark after the end of input, in ms: the last moment of the year 9999. Everything closes."""

# Verdicts: what became of a row. Exactly one per row, so that conservation (rule D3) can be counted.
HELD = "held"  # in state, until the state it went into is dropped
USED = "used"  # passed on
LATE = "late"
DUPLICATE = "duplicate"
FILTERED = "filtered"
NAN = "nan"  # dead letter: a float that is no number (rule B3)
OVERFLOW = "overflow"  # dead letter: a sum would leave 128 bits (rule D5)
TOO_MANY = "too-many"  # dead letter: its key holds as many rows as it may
DEAD = (NAN, OVERFLOW, TOO_MANY)

Order = tuple[int, int, int, int, str]
"""Rule R2: (time, source, partition, offset, id); every row of a flow has another one."""


class Row(NamedTuple):
    """A row as a step sees it: plain values (plain.py), one argument for each aggregate."""

    time: int  # event time, micros
    order: Order
    args: tuple[Any, ...] = ()
    cause: str = ""  # needed only where results are per row (sliding)


class Result(NamedTuple):
    """A window's result (rule W5); `start` and `end` are None for a window without bounds."""

    start: int | None
    end: int | None
    kind: str  # early | final | correction | retraction
    revision: int
    values: tuple[Any, ...]
    time: int  # event time of the result (rule T6), micros
    cause: str  # what its stable id is made of (rule D2)


def up_to_ms(micros: int) -> int:
    """The first whole millisecond at or after this time."""
    return -(-micros // MILLI)
