"""An operator: a plan's step ready to run, with an inbox, readers behind its ports, and its counts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

from headrace.model.declared import Read
from headrace.plan.plan import Flow, Plan, Step
from headrace.reference.batch import DERIVED, Arrival, Dead, Record, Tombstone, Travelling
from headrace.reference.counts import Counts


@dataclass(frozen=True, slots=True)
class Moment:
    """When a batch runs: W(k-1), W(k) and its clock, in ms."""

    before: int | None
    watermark: int | None
    clock: int


@dataclass(slots=True)
class Setting:
    """What the operators of one flow share. `aside`: late rows and duplicates, by step and port, if `keep_aside`.
    `arrival`: rows of patterns have their turn as they come, as in real time (rule P1)."""

    plan: Plan
    flow: Flow
    topics: tuple[str, ...]  # sorted: a row's source is its topic's place here
    keep_aside: bool = False
    arrival: bool = False
    records: list[Record] = field(default_factory=list)
    dead: list[Dead] = field(default_factory=list)
    aside: dict[tuple[str, str], list[Travelling]] = field(default_factory=dict)

    def cause(self, row: Travelling) -> str:
        """Rule D2: topic/partition/offset of a row of the log, unless a step gave it another."""
        return row.cause or f"{self.topics[row.order[1]]}/{row.order[2]}/{row.order[3]}"

    def origin(self, row: Travelling) -> str:
        source = row.order[1]
        return self.topics[source] if source < DERIVED else self.flow.step(source - DERIVED).name

    def bury(self, row: Travelling, step: str, reason: str, error: str) -> None:
        self.dead.append(Dead(self.origin(row), self.cause(row), step, reason, error, row.values))


class Operator(ABC):
    """Takes what is in its inboxes, once a batch."""

    def __init__(self, step: Step, setting: Setting) -> None:
        self.step = step
        self.name = step.name
        self.setting = setting
        self.inboxes: list[list[Travelling]] = [[] for _ in step.inputs]
        self.readers: dict[str, list[list[Travelling]]] = {port: [] for port, _ in step.ports}
        self.total = Counts()
        self.counts = Counts()

    def run(self, moment: Moment) -> None:
        """One batch: counts start anew, are checked, and join the total."""
        inputs, held = [inbox[:] for inbox in self.inboxes], self.total.held
        for inbox in self.inboxes:
            inbox.clear()  # steps before hold this very list
        self.counts = Counts(received=sum(map(len, inputs)), held=held)
        self.meet(inputs, moment)
        self.counts.check(self.name, held)
        self.total.add(self.counts)

    @abstractmethod
    def meet(self, inputs: list[list[Travelling]], moment: Moment) -> None:
        """The rows of every input."""

    def give(self, rows: Sequence[Travelling], port: str = "rows") -> None:
        for inbox in self.readers[port]:
            inbox.extend(rows)

    def put_aside(self, rows: Sequence[Travelling], port: str) -> None:
        """Late rows and duplicates: to whoever reads them; counted in any case."""
        if not rows:
            return
        self.give(rows, port)
        if self.setting.keep_aside:
            self.setting.aside.setdefault((self.name, port), []).extend(rows)

    def numbered(self, row: Travelling, number: int) -> Travelling:
        """One of several rows made of one: "/n" after its cause."""
        time, source, partition, offset, id = row.order
        cause = row.id or self.setting.cause(row)
        order = (time, source, partition, offset, f"{id}/{number:06d}")
        return row._replace(order=order, id="", cause=f"{cause}/{number}")

    def bury(self, row: Travelling, reason: str, error: str = "") -> None:
        """A dead letter (rules B2, B3, T2)."""
        self.counts.dead += 1
        self.setting.bury(row, self.name, reason, error)


class Single(Operator):
    """A step of one input."""

    def meet(self, inputs: list[list[Travelling]], moment: Moment) -> None:
        (rows,) = inputs
        self.take(rows, moment)

    @abstractmethod
    def take(self, rows: list[Travelling], moment: Moment) -> None: ...


class Source(Operator):
    """A stream's rows as they come from the log; those dated too far ahead are dead letters (rule T2)."""

    def __init__(self, step: Step, setting: Setting, skew: int) -> None:
        super().__init__(step, setting)
        self._skew = skew  # ms
        self.arrivals: list[Arrival] = []

    def meet(self, inputs: list[list[Travelling]], moment: Moment) -> None:
        arrivals, self.arrivals = self.arrivals, []
        self.counts.received = len(arrivals)
        limit = (moment.clock + self._skew) * 1_000
        passed = []
        for time, source, partition, offset, values in arrivals:
            row = Travelling((time, source, partition, offset, ""), "", "", values)
            if isinstance(values, Tombstone) and isinstance(self.step.node, Read):
                self.bury(row, "undecodable", "an empty value, and a stream has no use for a tombstone")
            elif time > limit:
                self.bury(row, "future")
            else:
                passed.append(row)
        self.counts.used = len(passed)
        self.give(passed)
