"""Interval join: two streams, equal keys, lower <= r.time - l.time <= upper, both inclusive (rules J1-J3, J6).

A pair comes out when its second row arrives. A left row's time is up when W > l.time + upper, a right row's when
W > r.time - lower, but never before W > its own time: where the bounds exclude 0, a row that is on time would be late
otherwise. When its time is up a row comes out alone if `how` says so and no partner was found, and its state is
dropped. A row that arrives after that is late, even if partners are still held.

| how   | comes out                                           | time, cause          |
|-------|-----------------------------------------------------|----------------------|
| inner | pairs                                               | the greater, both    |
| left  | pairs; left rows without partner, when time is up   | alone: the row's own |
| right | pairs; right rows without partner, when time is up  |                      |
| full  | pairs; rows of both sides, when time is up          |                      |
| semi  | left rows, once, when the first partner is there    | the row's own        |
| anti  | left rows without partner, when time is up          | the row's own        |

`unmatched`: rows without partner are told too where `how` leaves them out (of a semi or anti join those of the left);
the caller sends them elsewhere.

State is a list of small entries per side, in order R2. A row reads and marks only entries in a range of times on the
other side, and time drops only from the front: a kernel may keep a key's entries in chunks by (side, time).
Entries that have nothing to tell when their time is up do not wake their key one by one: a row never sees them (it
looks at their time), and they are dropped with the next row, or with the last entry.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from headrace.steps.row import HELD, LATE, MILLI, USED, Order, Row, up_to_ms

LEFT, RIGHT = 0, 1


class Joined(NamedTuple):
    """A pair, or one row alone."""

    left: Row | None
    right: Row | None
    time: int  # rule T6, micros
    cause: str  # rule D2: the causes of both rows around a plus, which no topic's name contains
    matched: bool  # whether there is a partner, told or not


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """Times in micros."""

    how: str  # inner | left | right | full | semi | anti
    lower: int
    upper: int
    unmatched: bool = False
    reach: tuple[int, int] = field(init=False, repr=False, compare=False)  # how far after a row's time its time is up
    alone: tuple[bool, bool] = field(init=False, repr=False, compare=False)  # whose rows come out without partner
    told: tuple[bool, bool] = field(init=False, repr=False, compare=False)  # those, or anyway

    def __post_init__(self) -> None:
        object.__setattr__(self, "reach", (max(self.upper, 0), max(-self.lower, 0)))
        object.__setattr__(self, "alone", (self.how in ("left", "full", "anti"), self.how in ("right", "full")))
        left, right = self.alone
        object.__setattr__(self, "told", (left or self.unmatched, right or (self.unmatched and self.pairs)))

    @property
    def pairs(self) -> bool:
        return self.how not in ("semi", "anti")

    @property
    def hold(self) -> int:
        """Rule T6: how far behind the watermark a row may come out that was on time when it came in."""
        left = self.reach[LEFT] if self.told[LEFT] or self.how == "semi" else 0
        return max(left, self.reach[RIGHT]) if self.told[RIGHT] else left

    def as_json(self) -> dict[str, Any]:
        return {
            "step": "interval_join",
            "how": self.how,
            "lower": self.lower,
            "upper": self.upper,
            "unmatched": self.unmatched,
        }


@dataclass(slots=True)
class Held:
    """A row, and whether it found a partner."""

    row: Row
    matched: bool = False


@dataclass(slots=True)
class State:
    """One key: entries by side, each in order R2. Between batches a semi or anti join holds no matched left row."""

    sides: tuple[list[Held], list[Held]] = field(default_factory=lambda: ([], []))

    @property
    def empty(self) -> bool:
        return not self.sides[LEFT] and not self.sides[RIGHT]

    @property
    def held(self) -> int:
        return len(self.sides[LEFT]) + len(self.sides[RIGHT])


def step(spec: Spec, state: State, row: Row, side: int, before: int | None) -> tuple[str, list[Joined]]:
    """The verdict on the row, and what it makes of the rows held on the other side, in their order R2.

    Of a row that comes in on both sides (a self join), the left one is given first.
    """
    if _is_late(spec, row, side, before):
        return LATE, []
    partners = _partners(spec, state, row, side, before)
    if spec.pairs:
        return HELD, _pair(state, row, side, partners)
    if side == RIGHT:
        return HELD, _find(spec, state, row, partners)
    if partners:
        return USED, [_joined(row, None)] if spec.how == "semi" else []
    _hold(state, LEFT, Held(row))
    return HELD, []


def unkeyed(spec: Spec, row: Row, side: int, before: int | None) -> tuple[str, list[Joined]]:
    """A row whose key is null has no partner (rule J6): it needs no state, and comes out alone at once if at all."""
    if _is_late(spec, row, side, before):
        return LATE, []
    return USED, [_alone(row, side)] if spec.told[side] else []


def on_time(spec: Spec, state: State, watermark: int | None) -> tuple[list[Joined], int]:
    """Rows whose time is up: those that come out alone, both sides in one order R2, and how many were dropped."""
    used = 0
    if not spec.pairs:
        used += _drop_found(state)
    if watermark is None:
        return [], used
    up: list[tuple[Order, int, Row]] = []
    for side, entries in enumerate(state.sides):
        gone = bisect_left(entries, watermark * MILLI - spec.reach[side], key=_time)
        if spec.told[side]:
            up += [(held.row.order, side, held.row) for held in entries[:gone] if not held.matched]
        del entries[:gone]
        used += gone
    return [_alone(row, side) for _, side, row in sorted(up)], used


def due(spec: Spec, state: State) -> int | None:
    """The next watermark, in ms, at which `on_time` has something to tell; else at which all entries can go."""
    tells, goes = [], []
    for side, entries in enumerate(state.sides):
        if entries:
            goes.append(entries[-1].row.time + spec.reach[side])
        if spec.told[side]:
            first = next((held.row.time for held in entries if not held.matched), None)
            if first is not None:
                tells.append(first + spec.reach[side])
    if tells:
        return up_to_ms(min(tells) + 1)
    return up_to_ms(max(goes) + 1) if goes else None


def _is_late(spec: Spec, row: Row, side: int, before: int | None) -> bool:
    return before is not None and row.time + spec.reach[side] < before * MILLI


def _partners(spec: Spec, state: State, row: Row, side: int, before: int | None) -> list[Held]:
    """Entries of the other side within the bounds whose time was not up at W(k-1)."""
    if side == LEFT:
        first, last = row.time + spec.lower, row.time + spec.upper
    else:
        first, last = row.time - spec.upper, row.time - spec.lower
    if before is not None:
        first = max(first, before * MILLI - spec.reach[1 - side])
    entries = state.sides[1 - side]
    return entries[bisect_left(entries, first, key=_time) : bisect_right(entries, last, key=_time)]


def _pair(state: State, row: Row, side: int, partners: list[Held]) -> list[Joined]:
    """Pairs of a row that is held from now on."""
    _hold(state, side, Held(row, bool(partners)))
    for partner in partners:
        partner.matched = True
    if side == LEFT:
        return [_joined(row, partner.row) for partner in partners]
    return [_joined(partner.row, row) for partner in partners]


def _find(spec: Spec, state: State, row: Row, partners: list[Held]) -> list[Joined]:
    """A right row of a semi or anti join: the left rows that now have their first partner."""
    _hold(state, RIGHT, Held(row))
    found = [partner for partner in partners if not partner.matched]
    for partner in found:
        partner.matched = True
    return [_joined(partner.row, None) for partner in found] if spec.how == "semi" else []


def _hold(state: State, side: int, held: Held) -> None:
    insort(state.sides[side], held, key=_order)


def _drop_found(state: State) -> int:
    """A left row that has its partner is of no more use to a semi or anti join."""
    entries = state.sides[LEFT]
    kept = [held for held in entries if not held.matched]
    used = len(entries) - len(kept)
    entries[:] = kept
    return used


def _alone(row: Row, side: int) -> Joined:
    return _joined(row, None, matched=False) if side == LEFT else _joined(None, row, matched=False)


def _joined(left: Row | None, right: Row | None, *, matched: bool = True) -> Joined:
    rows = [row for row in (left, right) if row is not None]
    cause = f"{left.cause if left else ''}+{right.cause if right else ''}"
    return Joined(left, right, max(row.time for row in rows), cause, matched)


def _time(held: Held) -> int:
    return held.row.time


def _order(held: Held) -> Order:
    return held.row.order
