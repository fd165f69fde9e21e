"""A pattern as an automaton: positions that rows are taken at, and the edges a partial match can go on by.

There are no empty moves: each repetition of a step is a position; an edge leads from the last row taken to the next
one, past steps that are left out, and says what must hold for the rows between them (the gap) and for the row taken:

| on the edge | a row of the gap                                | the row taken                         |
|-------------|-------------------------------------------------|---------------------------------------|
| `next`      | there is none                                   | fits the step                         |
| `then`      | does not fit the step that is waited for        | fits the step                         |
| `then_any`  | may be anything                                 | fits the step                         |
| never       | is not x (`never_next`: the first one is not x) | is not x (the same)                   |
| greedy      | does not fit the greedy step that was left      | does not fit it either                |
| until       | does not end the repetition, once it has begun  | does not end the repetition           |
| within      | may be anything                                 | is less than that from the row before |

`a then b.or_more() then c`:  start -> a -then-> b -then-> c -> end,  b -then-> b
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from headrace.base.errors import BadStep
from headrace.steps.pattern_steps import (
    FIRST,
    NEVER,
    NEVER_NEXT,
    Criterion,
    Group,
    Step,
    check,
    every,
    is_never,
    leaves,
)

END = -1  # the position behind the last one
MOST_POSITIONS = 1_000  # repetitions are written out; a pattern with more is a mistake or wants `or_more`


class Never(NamedTuple):
    """What must not come in a gap. `directly`: only its first row counts."""

    criterion: Criterion
    directly: bool
    within: int | None

    def as_json(self) -> dict[str, Any]:
        return {**self.criterion.as_json(), "directly": self.directly, "within": self.within}


class Guards(NamedTuple):
    """What a way through the pattern has gathered since the last row taken; `greedy`: numbers of steps."""

    nevers: tuple[Never, ...] = ()
    greedy: tuple[int, ...] = ()

    def then(self, other: Guards) -> Guards:
        return Guards(self.nevers + other.nevers, self.greedy + other.greedy)


@dataclass(frozen=True, slots=True)
class Edge:
    """`repeats`: it goes on with a repetition. `lifted`: the edge it becomes when a greedy step's until comes by."""

    to: int
    how: str
    guards: Guards
    within: int | None
    repeats: bool = False
    lifted: dict[int, int] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {
            "to": self.to,
            "how": self.how,
            "nevers": [never.as_json() for never in self.guards.nevers],
            "greedy": self.guards.greedy,
            "within": self.within,
            "repeats": self.repeats,
            "lifted": list(self.lifted.items()),
        }


class Nfa(NamedTuple):
    """`steps`: those that take rows, numbered as they are declared. `step_at`, `out`, `ends`: by position; a partial
    match there has the edges `out` to go on by, and is a match if `ends`."""

    steps: tuple[Step, ...]
    step_at: list[int]
    edges: list[Edge]
    start: list[Edge]
    out: list[list[int]]
    ends: list[bool]

    def as_json(self) -> dict[str, Any]:
        return {
            "steps": [
                {"name": s.name, **s.criterion.as_json(), "until": None if s.until is None else s.until.as_json()}
                for s in self.steps
            ],
            "step_at": self.step_at,
            "edges": [edge.as_json() for edge in self.edges],
            "start": [edge.as_json() for edge in self.start],
            "out": self.out,
            "ends": self.ends,
        }


def compiled(steps: tuple[Step | Group, ...], within: int | None) -> Nfa:
    """`within`: of the whole pattern; without it a `never` at the end has nothing to wait for (rule P4)."""
    return _Compiler(steps).run(steps, within)


class _Entry(NamedTuple):
    position: int
    how: str
    within: int | None
    guards: Guards


class _Exit(NamedTuple):
    position: int
    guards: Guards


class _Part(NamedTuple):
    """A piece of the pattern: where it is entered, where it is left, and the ways past it without taking a row."""

    entries: list[_Entry]
    exits: list[_Exit]
    skips: list[Guards]


class _Compiler:
    def __init__(self, steps: tuple[Step | Group, ...]) -> None:
        self._steps = tuple(step for step in leaves(steps) if not is_never(step))
        names = [step.name for step in leaves(steps)]
        if len(set(names)) < len(names):
            raise BadStep(f"two steps of a pattern share a name: {', '.join(names)}", why="rows are told by their step")
        for item in every(steps):
            check(item)
        self._number = {step.name: number for number, step in enumerate(self._steps)}
        self._step_at: list[int] = []
        self._edges: list[Edge] = []
        self._out: list[list[int]] = []

    def run(self, steps: tuple[Step | Group, ...], within: int | None) -> Nfa:
        whole = self._sequence(steps)
        if whole.skips:
            raise BadStep("a pattern whose every step may be left out", why="it would match no rows at all")
        if any(entry.guards.nevers for entry in whole.entries):
            raise BadStep(
                "a pattern cannot begin with never", why="there is no row yet from which on something must not come"
            )
        start = [Edge(entry.position, FIRST, entry.guards, None) for entry in whole.entries]
        ends = [False] * len(self._step_at)
        for position, guards in whole.exits:
            if guards.nevers:
                self._end(position, guards.nevers, within)
            else:
                ends[position] = True
        self._lift()
        return Nfa(self._steps, self._step_at, self._edges, start, self._out, ends)

    def _end(self, position: int, nevers: tuple[Never, ...], within: int | None) -> None:
        """Known when all of them are over; one without a bound of its own is over with the whole pattern."""
        own = [never.within for never in nevers if never.within is not None]
        bound = max(own) if len(own) == len(nevers) else None
        if bound is None and within is None:
            raise BadStep(
                "never at the end of a pattern without within",
                why="that something has not come is known only when its time is up",
                fix="say within",
            )
        self._edge(position, Edge(END, NEVER, Guards(nevers), bound))

    def _sequence(self, items: tuple[Step | Group, ...]) -> _Part:
        entries: list[_Entry] = []
        exits: list[_Exit] = []
        skips = [Guards()]
        for at, item in enumerate(items):
            if isinstance(item, Step) and is_never(item):
                guard = Guards(nevers=(_never(item),))
                exits = [_Exit(p, guards.then(guard)) for p, guards in exits]
                skips = [skip.then(guard) for skip in skips]
                continue
            part = self._repeated(item, _nevers_after(items, at))
            for position, guards in exits:
                for entry in part.entries:
                    self._edge(position, Edge(entry.position, entry.how, guards.then(entry.guards), entry.within))
            entries += [e._replace(guards=skip.then(e.guards)) for skip in skips for e in part.entries]
            exits = part.exits + [_Exit(p, guards.then(skip)) for p, guards in exits for skip in part.skips]
            skips = [one.then(other) for one in skips for other in part.skips]
        return _Part(entries, exits, skips)

    def _repeated(self, item: Step | Group, after: Guards) -> _Part:
        """The item as often as it may come. What must never come `after` it must not come between its repetitions
        either, as in Flink CEP: for all the pattern knows, the repetition is over."""
        left = Guards(greedy=(self._number[item.name],)) if isinstance(item, Step) and item.greedy else Guards()
        last = self._once(item)
        entries = [e._replace(how=item.how, within=_least(e.within, item.within)) for e in last.entries]
        exits: list[_Exit] = []
        for count in range(1, (item.most or item.least) + 1):
            if count > 1:
                following = self._once(item)
                self._repeat(item, last, following, after)
                last = following
            if count >= item.least:
                can_go_on = item.most is None or count < item.most
                exits += [_Exit(p, guards.then(left) if can_go_on else guards) for p, guards in last.exits]
        if item.most is None:
            self._repeat(item, last, last, after)
        return _Part(entries, exits, [left] if item.optional else [])

    def _repeat(self, item: Step | Group, one: _Part, other: _Part, after: Guards) -> None:
        for position, guards in one.exits:
            for entry in other.entries:
                within = _least(entry.within, item.within)
                gap = guards.then(after).then(entry.guards)
                self._edge(position, Edge(entry.position, item.inner, gap, within, repeats=isinstance(item, Step)))

    def _once(self, item: Step | Group) -> _Part:
        if isinstance(item, Group):
            part = self._sequence(item.steps)
            if part.skips:
                raise BadStep("a group whose every step may be left out", fix="make the group itself optional")
            return part
        self._step_at.append(self._number[item.name])
        self._out.append([])
        if len(self._step_at) > MOST_POSITIONS:
            raise BadStep(f"a pattern of more than {MOST_POSITIONS} repetitions", fix="repeat less, or use or_more")
        position = len(self._step_at) - 1
        return _Part([_Entry(position, item.how, None, Guards())], [_Exit(position, Guards())], [])

    def _edge(self, position: int, edge: Edge) -> None:
        self._out[position].append(len(self._edges))
        self._edges.append(edge)

    def _lift(self) -> None:
        """A greedy repetition that `until` has ended asks for nothing any more: the edge without that guard."""
        number = 0
        while number < len(self._edges):
            edge = self._edges[number]
            for step in edge.guards.greedy:
                if self._steps[step].until is not None:
                    rest = tuple(other for other in edge.guards.greedy if other != step)
                    edge.lifted[step] = len(self._edges)
                    self._edges.append(replace(edge, guards=edge.guards._replace(greedy=rest), lifted={}))
            number += 1


def _never(step: Step) -> Never:
    return Never(step.criterion, step.how == NEVER_NEXT, step.within)


def _nevers_after(items: tuple[Step | Group, ...], at: int) -> Guards:
    found = Guards()
    for item in items[at + 1 :]:
        if not (isinstance(item, Step) and is_never(item)):
            break
        found = found.then(Guards(nevers=(_never(item),)))
    return found


def _least(*bounds: int | None) -> int | None:
    return min((bound for bound in bounds if bound is not None), default=None)
