"""Partial matches: how one meets a row, and when time closes what is open to it."""

from __future__ import annotations

from headrace.steps.pattern_buffer import Kept, Node
from headrace.steps.pattern_nfa import END, Edge
from headrace.steps.pattern_state import Complete, Named, Run, Spec, State
from headrace.steps.pattern_steps import NEXT, THEN_ANY, Criterion, Step


def meet(spec: Spec, state: State, run: Run, kept: Kept, complete: list[Complete]) -> None:
    seen = Seen(spec, kept, run.node)
    taken: dict[int, set[int]] = {}  # positions, by step
    still: list[int] = []
    for number in run.open:
        number = _lifted(spec, seen, number)
        edge = spec.nfa.edges[number]
        if _closes(spec, seen, edge):
            continue
        if edge.to == END:
            if all(never.directly for never in edge.guards.nevers):  # the first row after it was not x
                complete.append(Complete(state.buffer.hold(run.node), kept.row.time))
            else:
                still.append(number)
            continue
        target = spec.nfa.steps[spec.nfa.step_at[edge.to]]
        fits = seen.fits(target.criterion)
        if fits and seen.after(edge.within) and not _ended(seen, target):
            taken.setdefault(spec.nfa.step_at[edge.to], set()).add(edge.to)
        if edge.how == THEN_ANY or (edge.how != NEXT and not (fits and seen.after(edge.within))):
            still.append(number)
    if still:
        run.open = still
        state.runs.append(run)
    _grow(spec, state, run.node, kept, taken, complete)
    if not still:
        state.buffer.release(run.node)


def begin(spec: Spec, state: State, kept: Kept, complete: list[Complete]) -> None:
    seen = Seen(spec, kept, None)
    taken: dict[int, set[int]] = {}
    for edge in spec.nfa.start:
        target = spec.nfa.steps[spec.nfa.step_at[edge.to]]
        greedy = (spec.nfa.steps[number] for number in edge.guards.greedy)
        if any(seen.fits(other.criterion) and not _ended(seen, other) for other in greedy):
            continue
        if seen.fits(target.criterion) and not _ended(seen, target):
            taken.setdefault(spec.nfa.step_at[edge.to], set()).add(edge.to)
    _grow(spec, state, None, kept, taken, complete)


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
        matches = any(spec.nfa.ends[position] for position in taken[step_number])
        if matches:
            complete.append(Complete(state.buffer.hold(node), kept.row.time))
        edges = sorted(edge for position in taken[step_number] for edge in spec.nfa.out[position])
        if edges:
            state.runs.append(Run(node, edges, matches))
        else:
            state.buffer.release(node)


def _lifted(spec: Spec, seen: Seen, number: int) -> int:
    """The edge without the greedy steps whose repetition this row ends."""
    for greedy in spec.nfa.edges[number].guards.greedy:
        edge = spec.nfa.edges[number]
        if greedy in edge.lifted and _ended(seen, spec.nfa.steps[greedy]):
            number = edge.lifted[greedy]
    return number


def _closes(spec: Spec, seen: Seen, edge: Edge) -> bool:
    """Whether the row closes the edge without taking it."""
    for never in edge.guards.nevers:
        if (seen.directly or not never.directly) and seen.after(never.within) and seen.fits(never.criterion):
            return True
    if any(seen.fits(spec.nfa.steps[greedy].criterion) for greedy in edge.guards.greedy):
        return True
    return edge.repeats and _ended(seen, spec.nfa.steps[spec.nfa.step_at[edge.to]])


def _ended(seen: Seen, target: Step) -> bool:
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
    """When the first of its edges is closed by time."""
    return min((at for number in run.open if (at := closes_at(spec, run, number)) is not None), default=None)


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
