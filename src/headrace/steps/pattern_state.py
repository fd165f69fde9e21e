"""What a pattern is to its step, and what it knows of a key."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from headrace.base.errors import BadStep
from headrace.steps.pattern_buffer import Buffer, Kept, Node
from headrace.steps.pattern_nfa import Nfa, compiled
from headrace.steps.pattern_slots import Condition, Slot, numbers
from headrace.steps.pattern_steps import Group, Step
from headrace.steps.row import Row

# Policies after a match.
NONE = "none"
TO_NEXT = "next"
PAST_LAST = "past last"
TO_FIRST = "to first"
TO_LAST = "to last"

# Kinds of what is found.
MATCH = "match"
TIMEOUT = "timeout"
REFUSED = "refused"


class Found(NamedTuple):
    """A match or a timeout: (name of the step, row) in order. `refused`: so many partial matches were not opened, since
    the key has `limit` of them; then `rows` is the row that would have opened them, of no step."""

    kind: str
    rows: tuple[tuple[str, Row], ...]
    time: int  # rule T6, micros
    cause: str  # what its stable id is made of (rule D2)
    refused: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """Times in micros. `within` bounds the state too; a pattern that only says `keep` says it here. `to`: the step of
    `to first` and `to last`. `asks`: the slots of each condition. `conditions` are the caller's own: a kernel has them
    as bound expressions. `output`: the columns of matches and timeouts."""

    steps: tuple[Step | Group, ...]
    within: int | None = None
    after: str = PAST_LAST
    to: str = ""
    arrival: bool = False
    limit: int = 10_000
    asks: tuple[tuple[Slot, ...], ...] = ()
    output: tuple[Slot, ...] = ()
    conditions: tuple[Condition, ...] = field(default=(), repr=False, compare=False)
    nfa: Nfa = field(init=False, repr=False, compare=False)
    numbers: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "nfa", compiled(self.steps, self.within))
        object.__setattr__(self, "numbers", numbers([*self.output, *(slot for slots in self.asks for slot in slots)]))
        names = [step.name for step in self.nfa.steps]
        if self.after in (TO_FIRST, TO_LAST) and self.to not in names:
            raise BadStep(f"after a match there is no skipping to {self.to!r}", why=f"the steps are {', '.join(names)}")

    def as_json(self) -> dict[str, Any]:
        """A kernel gets the automaton: there is one compiler of patterns."""
        return {
            "step": "pattern",
            "nfa": self.nfa.as_json(),
            "within": self.within,
            "after": self.after,
            "to": self.to,
            "arrival": self.arrival,
            "limit": self.limit,
            "conditions": [{"slots": [slot.as_json() for slot in slots]} for slots in self.asks],
            "output": {"slots": [slot.as_json() for slot in self.output]},
            "numbers": self.numbers,
        }


@dataclass(slots=True, eq=False)
class Run:
    """A partial match: its last row taken, the edges open to it (another list when they change), and whether it is a
    match all the same. `deadline`: when time closes the first of the edges `asked`."""

    node: Node
    open: list[int]
    matches: bool
    asked: list[int] | None = None
    deadline: int | None = None


@dataclass(slots=True, eq=False)
class Complete:
    """A match that may have to wait for its turn."""

    node: Node
    time: int


@dataclass(slots=True)
class State:
    """One key. `time`: up to where it has seen time pass, micros; by arrival nobody asks. `found` is empty between
    batches."""

    waiting: list[Row] = field(default_factory=list)  # for their turn, in order R2
    runs: list[Run] = field(default_factory=list)  # by first row
    complete: list[Complete] = field(default_factory=list)  # in the order in which they became so
    buffer: Buffer = field(default_factory=Buffer)
    time: int | None = None
    found: list[Found] = field(default_factory=list)

    @property
    def empty(self) -> bool:
        return not self.waiting and not self.runs and not self.complete

    @property
    def held(self) -> int:
        return len(self.waiting) + self.buffer.rows

    def as_json(self) -> dict[str, Any]:
        """Between batches: every row once, every node once after the one before it; others point at them by number."""
        nodes: dict[Node, int] = {}
        rows: dict[Kept, int] = {}
        for last in [run.node for run in self.runs] + [one.node for one in self.complete]:
            for node in last.path():
                rows.setdefault(node.kept, len(rows))
                nodes.setdefault(node, len(nodes))
        return {
            "time": self.time,
            "turn": self.buffer.turn,
            "gap": self.buffer.gap,
            "waiting": [_row_json(row) for row in self.waiting],
            "rows": [[kept.turn, *_row_json(kept.row)] for kept in rows],
            "nodes": [[rows[n.kept], n.step, None if n.before is None else nodes[n.before]] for n in nodes],
            "runs": [[nodes[run.node], run.open, run.matches] for run in self.runs],
            "complete": [[nodes[one.node], one.time] for one in self.complete],
        }

    @staticmethod
    def from_json(kept: dict[str, Any]) -> State:
        state = State(waiting=[_row(*row) for row in kept["waiting"]], time=kept["time"])
        buffer = state.buffer
        rows = []
        for turn, *row in kept["rows"]:
            rows.append(buffer.keep(_row(*row)))
            rows[-1].turn = turn
        nodes: list[Node] = []
        for row, step, before in kept["nodes"]:
            nodes.append(buffer.grow(None if before is None else nodes[before], rows[row], step))
        state.runs = [Run(buffer.hold(nodes[node]), edges, matches) for node, edges, matches in kept["runs"]]
        state.complete = [Complete(buffer.hold(nodes[node]), time) for node, time in kept["complete"]]
        for node in nodes:
            buffer.release(node)
        for row in rows:
            buffer.let_go(row)
        buffer.turn, buffer.gap = kept["turn"], kept["gap"]
        return state


def path(one: Run | Complete) -> list[tuple[int, int]]:
    """What is found at one moment is told in this order: turns and steps of the rows, one by one."""
    return [(node.kept.turn, node.step) for node in one.node.path()]


def _row_json(row: Row) -> list[Any]:
    return [row.time, list(row.order), list(row.args), row.cause]


def _row(time: int, order: list[Any], args: list[Any], cause: str) -> Row:
    return Row(time, (order[0], order[1], order[2], order[3], order[4]), tuple(args), cause)
