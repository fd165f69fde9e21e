"""Partial matches: how one meets a row, and when time closes what is open to it."""

from __future__ import annotations

from headrace.steps.pattern_buffer import Kept, Node
from headrace.steps.pattern_nfa import END, Edge
from headrace.steps.pattern_slots import Named
from headrace.steps.pattern_state import Complete, Run, Spec, State
from headrace.steps.pattern_steps import THEN, THEN_ANY, Criterion, Step


def meet(spec: Spec, state: State, run: Run, kept: Kept, complete: list[Complete]) -> None:
    """The row takes edges, closes them or passes them by: what is taken grows, what is still open stays."""
    seen = Seen(spec, kept, run.node)
    taken: dict[int, set[int]] = {}
    still: list[int] = []
    ends = False
    for number in run.open:
        number = _lifted(spec, seen, number)
        edge = spec.nfa.edges[number]
        if _closes(spec, seen, edge):
            continue
        if edge.to == END:
            ends = ends or all(never.directly for never in edge.guards.nevers)  # the first row after it was not x
            still.append(number)
            continue
        fits = _takes(spec, seen, edge, taken)
        if edge.how == THEN_ANY or (edge.how == THEN and not fits):
            still.append(number)
    if still != run.open:
        run.open = still
    if ends:
        complete.append(ended(spec, state, run, kept.row.time))
    if run.open:
        state.runs.append(run)
    _grow(spec, state, run.node, kept, taken, complete)
    if not run.open:
        state.buffer.release(run.node)


def begin(spec: Spec, state: State, kept: Kept, complete: list[Complete]) -> None:
    """Every first step that the row fits begins a partial match."""
    seen = Seen(spec, kept, None)
    taken: dict[int, set[int]] = {}
    for edge in spec.nfa.start:
        greedy = (spec.nfa.steps[number] for number in edge.guards.greedy)
        if not any(seen.fits(passed.criterion) and not _over(seen, passed) for passed in greedy):
            _takes(spec, seen, edge, taken)
    _grow(spec, state, None, kept, taken, complete)


def ended(spec: Spec, state: State, run: Run, time: int) -> Complete:
    """The run is a match now, once and for all: no other never at its end is waited for."""
    run.matches = True
    run.open = [number for number in run.open if spec.nfa.edges[number].to != END]
    return Complete(state.buffer.hold(run.node), time)


def _takes(spec: Spec, seen: Seen, edge: Edge, taken: dict[int, set[int]]) -> bool:
    """Whether the row fits the step it leads to; if so it is taken there, unless it ends the step's repetition.
    `taken`: positions, by step."""
    number = spec.nfa.step_at[edge.to]
    target = spec.nfa.steps[number]
    if not seen.after(edge.within) or not seen.fits(target.criterion):
        return False
    if not _over(seen, target):
        taken.setdefault(number, set()).add(edge.to)
    return True


def _grow(
    spec: Spec,
    state: State,
    before: Node | None,
    kept: Kept,
    taken: dict[int, set[int]],
    complete: list[Complete],
) -> None:
    """One partial match for each step that takes the row, however many ways lead there: so none is found twice."""
    for step_number in sorted(taken):
        node = state.buffer.grow(before, kept, step_number)
        edges = sorted(edge for position in taken[step_number] for edge in spec.nfa.out[position])
        run = Run(node, edges, False)
        if any(spec.nfa.ends[position] for position in taken[step_number]):
            complete.append(ended(spec, state, run, kept.row.time))
        if run.open:
            state.runs.append(run)
        else:
            state.buffer.release(node)


def _lifted(spec: Spec, seen: Seen, number: int) -> int:
    """The edge without the greedy steps whose repetition this row ends."""
    for greedy in spec.nfa.edges[number].guards.greedy:
        edge = spec.nfa.edges[number]
        if greedy in edge.lifted and _over(seen, spec.nfa.steps[greedy]):
            number = edge.lifted[greedy]
    return number


def _closes(spec: Spec, seen: Seen, edge: Edge) -> bool:
    """Whether the row closes the edge without taking it."""
    for never in edge.guards.nevers:
        if (seen.directly or not never.directly) and seen.after(never.within) and seen.fits(never.criterion):
            return True
    if any(seen.fits(spec.nfa.steps[greedy].criterion) for greedy in edge.guards.greedy):
        return True
    return edge.repeats and _over(seen, spec.nfa.steps[spec.nfa.step_at[edge.to]])


def _over(seen: Seen, target: Step) -> bool:
    """Whether the row ends the step's repetition."""
    return target.until is not None and seen.fits(target.until)


class Seen:
    """A row as a partial match sees it. Too far away in time from the first row it fits nothing: only by arrival can
    such a row come before the watermark has closed the partial match."""

    __slots__ = ("_answers", "_named", "_near", "_spec", "directly", "node", "row")

    def __init__(self, spec: Spec, kept: Kept, node: Node | None) -> None:
        self._spec = spec
        self.row = kept.row
        self.node = node
        self.directly = node is not None and kept.turn == node.kept.turn + 1
        self._near = node is None or _near(self.row.time, node.first.row.time, spec.within)
        self._answers: dict[int, bool] = {}
        self._named: Named | None = None

    def fits(self, criterion: Criterion) -> bool:
        if not self._near or (criterion.flag is not None and self.row.args[criterion.flag] is not True):
            return False
        if criterion.condition is None:
            return True
        answer = self._answers.get(criterion.condition)
        if answer is None:
            if self._named is None:
                self._named = _named(self._spec, self.node)
            answer = self._spec.conditions[criterion.condition](self.row.args, self._named) is True
            self._answers[criterion.condition] = answer
        return answer

    def after(self, within: int | None) -> bool:
        """Whether it comes less than that after the last row taken."""
        return self.node is None or _near(self.row.time, self.node.kept.row.time, within)


def _named(spec: Spec, node: Node | None) -> Named:
    found: Named = {one.name: [] for one in spec.nfa.steps}
    for one in [] if node is None else node.path():
        found[spec.nfa.steps[one.step].name].append(one.kept.row.args)
    return found


def deadline(spec: Spec, run: Run) -> int | None:
    """When the first of its edges is closed by time. Asked at every row of the key, answered anew when edges change."""
    if run.asked is not run.open:
        run.asked = run.open
        run.deadline = min(
            (at for number in run.open if (at := closes_at(spec, run, number)) is not None), default=None
        )
    return run.deadline


def closes_at(spec: Spec, run: Run, number: int) -> int | None:
    """When this edge is closed by time, micros."""
    within = spec.nfa.edges[number].within
    ups = []
    if spec.within is not None:
        ups.append(run.node.first.row.time + spec.within)
    if within is not None:
        ups.append(run.node.kept.row.time + within)
    return min(ups, default=None)


def _near(time: int, other: int, within: int | None) -> bool:
    """Rule P3: strictly less. By arrival a row may be older than the one before it."""
    return within is None or abs(time - other) < within
