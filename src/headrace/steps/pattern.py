"""Patterns: rows of a key that follow each other as a pattern says (rules P1 to P5, meant as in Flink CEP).

Rows have their turn in event-time order, each when W > its time; `arrival` (real time, rule R5): as they come.
A partial match is the rows it has taken and the edges of the automaton (pattern_nfa.py) that are still open to it; each
row in its turn takes an edge, closes it or passes it by. Time closes edges too: `within` of the whole pattern counts
from the first row, `within` of a step from the row before it. When no edge is left, the partial match is over:

| closed last by  | it is                                                                   |
|-----------------|-------------------------------------------------------------------------|
| a row           | dropped                                                                 |
| time            | a timeout, told at W >= the bound; nothing, if it was a match all along |
| the end's never | a match: what must not come has not come, told at W >= the bound        |

`after`: what a match takes with it. Matches come out by their first rows: one waits while a partial match that began
before it is open, since that one, once a match, may take it with it. `none` takes nothing and waits for nothing.

| after      | partial matches dropped, and matches that wait: those that began |
|------------|------------------------------------------------------------------|
| next       | with the match's first row                                       |
| past last  | not after the match's last row                                   |
| to first x | before the match's first row of x; no such row: none             |
| to last x  | before the match's last row of x; no such row: none              |

Where it goes its own way: the same rows in the same steps are one match or one timeout, however many ways lead to them;
a row that is x closes a never even if it fits the next step too; a never with only optional steps after it waits for
its bound; a greedy step that is full asks for nothing; a group is reached as it says, whichever of its steps is first.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from heapq import heapify, heappop, heappush
from math import isfinite

from headrace.steps.emission import Passes
from headrace.steps.pattern_nfa import END
from headrace.steps.pattern_run import begin, closes_at, deadline, ended, meet
from headrace.steps.pattern_skip import refuse, settle, told
from headrace.steps.pattern_state import TIMEOUT, Complete, Found, Run, Spec, State, path
from headrace.steps.row import HELD, LATE, MILLI, NAN, Order, Row, up_to_ms

__all__ = ["Spec", "State", "due", "on_time", "step", "take"]


def step(spec: Spec, state: State, row: Row, before: int | None) -> str:
    """Holds the row until its turn; late when that has passed (rule P1). By arrival its turn is now, and what it has
    found is there to `take` at once. A float that is no number is refused where a number is asked for (rule B3)."""
    if spec.arrival:
        if _is_nan(spec, row):
            return NAN
        _turn(spec, state, row)
        return HELD
    if before is not None and (state.time is None or before * MILLI > state.time):
        state.time = before * MILLI
    if state.time is not None and row.time < state.time:
        return LATE
    if _is_nan(spec, row):
        return NAN
    insort(state.waiting, row, key=_order)
    return HELD


def on_time(
    spec: Spec, state: State, watermark: int | None, clock: int, passes: Passes | None = None
) -> tuple[list[Found], int]:
    """Rows that time has passed have their turn, in order; whatever is over between them comes out between them."""
    if watermark is not None:
        time = watermark * MILLI
        due = bisect_left(state.waiting, time, key=_time)
        for row in state.waiting[:due]:
            _expire(spec, state, row.time)
            _turn(spec, state, row)
        del state.waiting[:due]
        _expire(spec, state, time)
        if not spec.arrival:
            state.time = time
    return take(state)


def take(state: State) -> tuple[list[Found], int]:
    """What was found, and how many held rows were used up, since the last time somebody asked."""
    found, state.found = state.found, []
    used, state.buffer.used = state.buffer.used, 0
    return found, used


def due(spec: Spec, state: State) -> int | None:
    """The next watermark, in ms, at which `on_time` has something to do."""
    moments = [moment for run in state.runs if (moment := deadline(spec, run)) is not None]
    if state.waiting:
        moments.append(state.waiting[0].time + 1)
    return up_to_ms(min(moments)) if moments else None


def _turn(spec: Spec, state: State, row: Row) -> None:
    """Every partial match meets the row, then the row begins new ones."""
    kept = state.buffer.keep(row)
    before, state.runs = state.runs, []
    complete: list[Complete] = []
    for run in before:
        meet(spec, state, run, kept, complete)
    begin(spec, state, kept, complete)
    state.complete += sorted(complete, key=path)  # of matches that a row completes, those with earlier rows come first
    settle(spec, state)
    refuse(spec, state, row)
    state.buffer.passed(kept)


def _expire(spec: Spec, state: State, time: int) -> None:
    """Closes the edges whose time is up, moment by moment: at each the timeouts, then the matches, by their rows."""
    moments = []
    for number, run in enumerate(state.runs):
        moment = deadline(spec, run)
        if moment is not None and moment <= time:
            moments.append((moment, number, run))
    heapify(moments)
    complete: list[Complete] = []
    over: list[Run] = []
    while moments:
        moment, number, run = heappop(moments)
        if run.open:  # else a match has taken it with it
            _close(spec, state, run, moment, complete, over)
            again = deadline(spec, run)
            if again is not None and again <= time:
                heappush(moments, (again, number, run))
        if not moments or moments[0][0] > moment:
            for run in sorted(over, key=path):
                if not run.matches:
                    state.found.append(told(spec, TIMEOUT, run.node, moment - 1))
                state.buffer.release(run.node)
            state.complete += sorted(complete, key=path)
            settle(spec, state)
            over.clear()
            complete.clear()
    state.runs = [run for run in state.runs if run.open]


def _close(spec: Spec, state: State, run: Run, moment: int, complete: list[Complete], over: list[Run]) -> None:
    closed = [number for number in run.open if (at := closes_at(spec, run, number)) is not None and at <= moment]
    run.open = [number for number in run.open if number not in closed]
    if any(spec.nfa.edges[number].to == END for number in closed):
        complete.append(ended(spec, state, run, moment - 1))
    if not run.open:
        over.append(run)


def _is_nan(spec: Spec, row: Row) -> bool:
    return any((value := row.args[at]) is not None and not isfinite(value) for at in spec.numbers)


def _order(row: Row) -> Order:
    return row.order


def _time(row: Row) -> int:
    return row.time
