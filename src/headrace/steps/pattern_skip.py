"""Which matches come out, and what they take with them (`after`); what is beyond the limit is refused, and told."""

from __future__ import annotations

from headrace.steps.pattern_buffer import Node
from headrace.steps.pattern_state import (
    MATCH,
    NONE,
    PAST_LAST,
    REFUSED,
    TO_FIRST,
    TO_NEXT,
    Complete,
    Found,
    Run,
    Spec,
    State,
)
from headrace.steps.row import Row


def settle(spec: Spec, state: State) -> None:
    """Tells the matches that wait for nothing."""
    if spec.after == NONE:
        for one in state.complete:
            _tell(spec, state, one)
        state.complete.clear()
    while state.complete:
        one = min(state.complete, key=_first_turn)
        while state.runs and not state.runs[0].open:
            state.runs.pop(0)
        if state.runs and _first_turn(state.runs[0]) < _first_turn(one):
            return
        state.complete.remove(one)
        _skip(spec, state, one.node)
        _tell(spec, state, one)


def _skip(spec: Spec, state: State, node: Node) -> None:
    """Drops what began before the turn that the policy names."""
    turn = _skipped_to(spec, node)
    for run in state.runs:
        if run.open and _first_turn(run) < turn:
            run.open = []
            state.buffer.release(run.node)
    state.runs = [run for run in state.runs if run.open]
    for one in state.complete:
        if _first_turn(one) < turn:
            state.buffer.release(one.node)
    state.complete = [one for one in state.complete if _first_turn(one) >= turn]


def _skipped_to(spec: Spec, node: Node) -> int:
    if spec.after == TO_NEXT:
        return node.first.turn + 1
    if spec.after == PAST_LAST:
        return node.kept.turn + 1
    turns = [one.kept.turn for one in node.path() if spec.nfa.steps[one.step].name == spec.to]
    if not turns:
        return 0
    return turns[0] if spec.after == TO_FIRST else turns[-1]


def refuse(spec: Spec, state: State, row: Row) -> None:
    """Keeps to the limit: those that began last are not opened, and that is told."""
    refused = 0
    held: list[Run] | list[Complete]
    for held in (state.runs, state.complete):
        while held and len(state.runs) + len(state.complete) > spec.limit:
            state.buffer.release(held.pop().node)
            refused += 1
    if refused:
        state.found.append(Found(REFUSED, (("", row),), row.time, f"{REFUSED}/{row.cause}", refused))


def _tell(spec: Spec, state: State, one: Complete) -> None:
    state.found.append(told(spec, MATCH, one.node, one.time))
    state.buffer.release(one.node)


def told(spec: Spec, kind: str, node: Node, time: int) -> Found:
    """Rule D2: a match is known by its rows, and by the steps that took them."""
    rows = tuple((spec.nfa.steps[one.step].name, one.kept.row) for one in node.path())
    causes = ",".join(f"{name}={row.cause}" for name, row in rows)
    return Found(kind, rows, time, f"{kind}/{causes}")


def _first_turn(one: Run | Complete) -> int:
    return one.node.first.turn
