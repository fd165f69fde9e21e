"""Features: what is known of a key at each of its rows, told at once and never corrected (docs/features.md).

A row is put behind all that are not younger than it. Its window (t - delay - size, t - delay] then holds the rows of
these times that have come so far, itself included if there is no delay; what comes later changes no vector that was
told. A silence of `ttl` cuts: nothing before it is known after it.

| time, amount; over 10 min, ttl 1 h | times | last |                                     |
|------------------------------------|-------|------|-------------------------------------|
| 10:00 5                            | 1     | null |                                     |
| 10:08 7                            | 2     | 5    |                                     |
| 10:04 9                            | 2     | 5    | the one of 10:08 is younger         |
| 10:12 1                            | 3     | 7    | the one of 10:00 has left           |
| 11:12 2                            | 1     | null | an hour of silence: the key is anew |

Rows are kept while a row that is not late can ask for them: it is not older than W - lateness. Rows of other inputs are
only remembered: one is late when no row can ask for it any more. Of a window in tiles (tiles.py) those older than
W - lateness are put into their tiles: no row that comes is older, so all are told of the whole of them.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from headrace.steps import aggregate, seen
from headrace.steps.algebra import Algebra
from headrace.steps.hll import hash64
from headrace.steps.known import Known
from headrace.steps.row import DUPLICATE, LATE, MILLI, NAN, TOO_MANY, USED, Row, up_to_ms
from headrace.steps.tiles import PLACE, Tiles, Tiling

NEVER = -(1 << 63)
"""Before all times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Times in micros. `places`: where each aggregate's argument stands among the row's args, -1: it has none. `input`:
    whose rows, 0 those that are told. `tile`: the width of its tiles, 0: it is exact."""

    size: int
    delay: int
    aggregates: tuple[aggregate.Spec, ...]
    places: tuple[int, ...]
    input: int = 0
    tile: int = 0
    algebras: tuple[Algebra, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "algebras", tuple(map(aggregate.algebra, self.aggregates)))

    def tiling(self, tells: bool) -> Tiling | None:
        """How it is kept in tiles, if it is. `tells`: which rows they are of is kept, too."""
        algebras, places = self.algebras, self.places
        if tells:
            algebras, places = (*algebras, seen.MARKING), (*places, PLACE)
        own = Tiling(size=self.size, width=self.tile, algebras=algebras, places=places, input=self.input)
        return own if self.tile else None

    def as_json(self) -> dict[str, Any]:
        return {
            "size": self.size,
            "delay": self.delay,
            "aggregates": [one.as_json() for one in self.aggregates],
            "places": self.places,
            "input": self.input,
            "tile": self.tile,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """Times in micros. `last`: (place among the row's args, of how many rows). `most`: rows that a key may hold of an
    input. `kept`: for each input, where the args stand among the columns that a kernel sees. `once`: what kind of value
    the id is that stands last among the args of a row that is told, "": there is none. `seen`: tell which rows a vector
    is over; `topics`: their names, by source number."""

    windows: tuple[Window, ...]
    last: tuple[tuple[int, int], ...]
    ttl: int
    lateness: int
    most: int
    kept: tuple[tuple[int, ...], ...]
    once: str = ""
    seen: bool = False
    topics: tuple[str, ...] = ()
    reaches: tuple[int, ...] = field(init=False)  # how far back rows are asked for, by input
    rows: int = field(init=False)  # how many rows before are asked for, however old
    floats: tuple[tuple[int, ...], ...] = field(init=False, repr=False, compare=False)
    tilings: tuple[Tiling | None, ...] = field(init=False, repr=False, compare=False)  # by window

    def __post_init__(self) -> None:
        # A repeated row that is not late is not older than W - lateness: one micro more, and its id is still known. The
        # same for a row that is not in its tile yet.
        reaches, floats = [1 if self.once else 0] + [0] * (len(self.kept) - 1), [set[int]() for _ in self.kept]
        for window in self.windows:
            reach = 1 if window.tile else window.size + window.delay
            reaches[window.input] = max(reaches[window.input], reach)
            arguments = zip(window.places, window.aggregates, strict=True)
            floats[window.input] |= {place for place, one in arguments if one.of == "float"}
        object.__setattr__(self, "reaches", tuple(reaches))
        object.__setattr__(self, "rows", max((n for _, n in self.last), default=0))
        object.__setattr__(self, "floats", tuple(map(tuple, floats)))
        object.__setattr__(self, "tilings", tuple(window.tiling(self.seen) for window in self.windows))

    def as_json(self) -> dict[str, Any]:
        return {
            "step": "features",
            "windows": [window.as_json() for window in self.windows],
            "last": self.last,
            "ttl": self.ttl,
            "lateness": self.lateness,
            "most": self.most,
            "kept": self.kept,
            "once": bool(self.once),
            "seen": self.seen,
        }


@dataclass(slots=True)
class State:
    """One key: of each input its rows by time, those of one time as they came; of each window its tiles, none if it is
    exact. Rows that are older than `tiled` are in their tiles; those of the first input that come are not older."""

    inputs: tuple[list[Known], ...]
    tiles: tuple[Tiles, ...]
    tiled: int = NEVER

    @property
    def empty(self) -> bool:
        return not any(self.inputs) and not any(self.tiles)

    @property
    def held(self) -> int:
        return 0  # they are remembered, the rows have gone on


def fresh(spec: Spec) -> State:
    """A key of which nothing is known."""
    return from_rows(spec, [[] for _ in spec.kept])


def from_rows(spec: Spec, rows: Sequence[list[Known]]) -> State:
    """A key of which these rows are known, by input and time."""
    return State(tuple(rows), tuple({} for _ in spec.windows))


def turn(input: int) -> int:
    """Among rows of one time the least goes first: what is remembered is there when a row is told of it."""
    return int(input == 0)


def step(spec: Spec, state: State, row: Row, before: int | None, input: int = 0) -> tuple[str, tuple[Any, ...]]:
    """The verdict on a row. One of the first input has features, if it is used: of each window its values, then those
    of rows before, then what was seen."""
    rows = state.inputs[input]
    if before is not None and _late(spec, row.time, input, before * MILLI):
        return LATE, ()
    known = _known(spec, row, input)
    if spec.once and input == 0 and any(known.id == one.id for one in rows):
        return DUPLICATE, ()
    if any(row.args[i] is not None and not math.isfinite(row.args[i]) for i in spec.floats[input]):
        return NAN, ()
    if len(rows) >= spec.most:
        _drop(spec, state, before)
        if len(rows) >= spec.most:
            return TOO_MANY, ()
    at = bisect_right(rows, row.time, key=_time)
    rows.insert(at, known)
    if row.time < state.tiled:  # of another input: its tile is there already
        for tiling, tiles in _tiled(spec, state, input):
            tiling.put(tiles, known)
    return USED, () if input else tuple(_vector(spec, state, row.time, at))


def known_at(spec: Spec, state: State, time: int) -> tuple[Any, ...]:
    """What is known of the key at a time, without a row: windows end there, and the row before is the newest."""
    return tuple(_vector(spec, state, time, bisect_right(state.inputs[0], time, key=_time)))


def on_time(spec: Spec, state: State, watermark: int | None) -> None:
    """Forgets what no row can ask for any more."""
    _drop(spec, state, watermark)


def due(spec: Spec, state: State) -> int | None:
    """The next watermark, in ms, at which `on_time` forgets all that windows ask for, or the key. What it could forget
    before waits for the key's next row: a quiet key is woken a few times, not once for each of its rows."""
    stays = list(spec.reaches)
    stays[0] = min(stays[0], spec.ttl) if len(state.inputs[0]) > spec.rows else spec.ttl
    ends = [rows[-1].time + kept for rows, kept in zip(state.inputs, stays, strict=True) if rows]
    ends += [tiling.gone(max(tiles)) for tiling, tiles in _tiled(spec, state) if tiles]
    return up_to_ms(min(ends) + spec.lateness) if ends else None


def _late(spec: Spec, time: int, input: int, watermark: int) -> bool:
    """A row that is told must find what its windows need. One that is remembered needs nothing: it is late when nobody
    can ask for it."""
    if input == 0:
        return time + spec.lateness < watermark
    ends = [tiling.gone(time) for tiling in spec.tilings if tiling and tiling.input == input]
    return max([time + spec.reaches[input], *ends]) + spec.lateness <= watermark


def _tiled(spec: Spec, state: State, input: int | None = None) -> list[tuple[Tiling, Tiles]]:
    """The windows in tiles, of one input or all, and their tiles."""
    own = zip(spec.tilings, state.tiles, strict=True)
    return [(tiling, tiles) for tiling, tiles in own if tiling and input in (None, tiling.input)]


def _known(spec: Spec, row: Row, input: int) -> Known:
    args, id = row.args, 0
    if spec.once and input == 0:
        args, id = args[:-1], hash64(aggregate.canonical(spec.once, args[-1]))
    return Known(row.time, args, id, seen.place(row) if spec.seen else None)


def _vector(spec: Spec, state: State, time: int, at: int) -> list[Any]:
    """The features at this time; `at`: how many rows are before."""
    rows = state.inputs[0]
    end = bisect_right(rows, time, at, key=_time)
    known, after = at, time  # the first row after the last silence
    while known and after - rows[known - 1].time < spec.ttl:
        known -= 1
        after = rows[known].time
    told: list[Any] = []
    marked: list[tuple[Tiling, seen.Marks]] = []
    for window, tiling, tiles in zip(spec.windows, spec.tilings, state.tiles, strict=True):
        over = state.inputs[window.input]
        if tiling:  # no silence is as long as its ttl
            values = tiling.values(tiles, _untiled(state, over, tiling.first_of(time), time), time)
            if spec.seen:
                marked.append((tiling, values.pop()))
            told += values
            continue
        low, high = (0, len(over)) if window.input else (known, end)
        until = time - window.delay
        first = bisect_right(over, until - window.size, low, high, key=_time)
        told += _values(window, over, first, bisect_right(over, until, first, high, key=_time))
    for place, n in spec.last:
        before = [one.args[place] for one in rows[max(known, at - n) : at]]
        told.append(before[::-1] if n > 1 else before[0] if before else None)
    if spec.seen:
        told.append(_seen(spec, state, time, at, known, marked))
    return told


def _seen(spec: Spec, state: State, time: int, at: int, known: int, marked: list[tuple[Tiling, seen.Marks]]) -> str:
    """Which rows the vector is over: of each input those of the window that begins first, be it of rows or of tiles,
    and those before. `marked`: what the tiles say."""
    parts = []
    for input, (rows, reach) in enumerate(zip(state.inputs, spec.reaches, strict=True)):
        stop = bisect_right(rows, time, key=_time)
        low, before = (known, at - spec.rows) if input == 0 else (0, stop)
        first = bisect_right(rows, time - reach, 0, stop, key=_time)
        tiles = [(tiling.first_of(time), marks) for tiling, marks in marked if tiling.input == input]
        begin, marks = min(tiles, key=itemgetter(0), default=(time, None))
        if marks is not None and begin <= time - reach:
            parts.append(marks)
            stop = bisect_left(rows, begin, key=_time)
        over = rows[max(low, min(first, before)) : stop]
        parts.append(seen.marks(one.place for one in over if one.place is not None))
    return seen.text(spec.topics, *parts)


def _untiled(state: State, rows: list[Known], since: int, until: int) -> list[Known]:
    """The rows from `since` to `until` that are in no tile yet."""
    low = bisect_left(rows, max(since, state.tiled), key=_time)
    return rows[low : bisect_right(rows, until, low, key=_time)]


def _values(window: Window, rows: list[Known], first: int, end: int) -> list[Any]:
    """The aggregates over rows from `first` to before `end`."""
    told = []
    for algebra, place in zip(window.algebras, window.places, strict=True):
        total = algebra.empty()
        for i in range(first, end):
            order = (rows[i].time, i, 0, 0, "")
            total = algebra.add(total, None if place < 0 else rows[i].args[place], order)
        told.append(algebra.value(total))
    return told


def _drop(spec: Spec, state: State, watermark: int | None) -> None:
    """A row that can still come and be told is not older than `oldest`."""
    if watermark is None:
        return
    oldest = watermark * MILLI - spec.lateness
    _tile(spec, state, oldest)
    unasked = [
        bisect_right(rows, oldest - reach, key=_time) for rows, reach in zip(state.inputs, spec.reaches, strict=True)
    ]
    rows = state.inputs[0]
    if rows and rows[-1].time + spec.ttl <= oldest:
        unasked[0] = len(rows)
    else:
        unasked[0] = max(0, min(unasked[0], bisect_right(rows, oldest, key=_time) - spec.rows))
    for rows, gone in zip(state.inputs, unasked, strict=True):
        del rows[:gone]


def _tile(spec: Spec, state: State, oldest: int) -> None:
    """Puts rows into their tiles that none which comes can be older than."""
    for tiling, tiles in _tiled(spec, state):
        for row in _untiled(state, state.inputs[tiling.input], NEVER, oldest - 1):
            tiling.put(tiles, row)
        tiling.forget(tiles, oldest)
    state.tiled = max(oldest, state.tiled)


def _time(known: Known) -> int:
    return known.time
