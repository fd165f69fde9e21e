"""The plan: an app's steps in the order data walks them, named, with holds and levels; cut into flows.

A flow is a connected part of the plan and becomes one query with one watermark (rule T4).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from headrace.base.errors import BadApp
from headrace.expr.types import Columns
from headrace.model import changing, declared
from headrace.model.app import App
from headrace.model.changing import Changing
from headrace.model.declared import Node, Read, ReadTable
from headrace.model.output import Guarantee, Output, Sink, kind
from headrace.model.target import Target
from headrace.model.window import Forever, Hopping, Tumbling

ZERO = timedelta(0)
TIMED = (
    declared.Dedup,
    declared.Changed,
    declared.Aggregated,
    declared.Joined,
    declared.Enriched,
    declared.Featured,
    declared.Pattern,
)
"""Steps that go by event time."""
CALLED = (declared.MapRows, declared.FilterRows)
"""Steps that call a function of the user's."""
STAGED = (
    *TIMED,
    *CALLED,
    declared.Decided,
    changing.Versions,
    changing.ViewJoin,
    changing.Settled,
    changing.Grouped,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """A step's input: an output port of an earlier step ("rows", "late", "duplicates", ...)."""

    step: int
    port: str = "rows"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One node in its place. `hold`: how far behind the query's watermark its time runs (rule T6).
    `level`: how many stages (stateful steps, Python functions) lie before it, itself included."""

    ordinal: int
    name: str
    node: Node
    inputs: tuple[Input, ...]
    hold: timedelta
    level: int

    @property
    def staged(self) -> bool:
        """Needs a stage of its own: rows are handed over to a kernel, to Python or to a policy."""
        return isinstance(self.node, STAGED)

    @property
    def kernel(self) -> bool:
        """Keeps state, by key."""
        return self.staged and not isinstance(self.node, (*CALLED, declared.Decided))

    @property
    def ports(self) -> tuple[tuple[str, Columns], ...]:
        """Its outputs and their columns."""
        return declared.ports(self.node)

    @property
    def by_clock(self) -> bool:
        """Follows processing time instead of the watermark (rule W7)."""
        return isinstance(self.node, declared.Aggregated) and getattr(self.node.window, "time", "") == "processing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """Where rows leave: a port's rows go to a topic or a store. `form`, `guarantee`: as in model/output.py."""

    ordinal: int
    input: Input
    columns: Columns
    target: Sink
    key: tuple[tuple[str, object], ...]
    form: str
    guarantee: Guarantee
    level: int

    @property
    def stored(self) -> bool:
        """Whether rows go to a store."""
        return isinstance(self.target, Target)

    @property
    def retracts(self) -> bool:
        """Whether a window's retraction takes the row away that it speaks of: keyed stores delete on it (rule W5)."""
        return self.stored and self.form == "rows" and bool(self.key) and declared.KIND in self.columns


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """A connected part of the plan: one query, one watermark."""

    name: str
    steps: tuple[Step, ...]
    exits: tuple[Exit, ...]

    @property
    def sources(self) -> tuple[Step, ...]:
        return tuple(s for s in self.steps if isinstance(s.node, Read | ReadTable))

    @property
    def by_topic(self) -> tuple[Step, ...]:
        """The sources in the order of their topics: a row's source is its place here (rule R2)."""
        return tuple(sorted(self.sources, key=topic_of))

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics it reads: a row's source is a place in here."""
        return tuple(topic_of(source) for source in self.by_topic)

    def step(self, ordinal: int) -> Step:
        return next(s for s in self.steps if s.ordinal == ordinal)

    def readers(self, ordinal: int, port: str) -> tuple[tuple[Step, int], ...]:
        """The steps that read this port, each with the number of its input."""
        at = Input(step=ordinal, port=port)
        return tuple((s, number) for s in self.steps for number, own in enumerate(s.inputs) if own == at)

    def leaving(self, ordinal: int, port: str) -> tuple[Exit, ...]:
        at = Input(step=ordinal, port=port)
        return tuple(e for e in self.exits if e.input == at)

    @property
    def stores(self) -> tuple[Exit, ...]:
        """The stores it writes, in the order they were declared: of each its first exit. Others have the same shape."""
        first: dict[str, Exit] = {}
        for leaving in self.exits:
            if leaving.stored:
                first.setdefault(leaving.target.label, leaving)
        return tuple(first.values())

    def reads(self, ordinal: int, port: str) -> bool:
        """Whether anybody wants this port's rows; they are counted in any case."""
        return bool(self.readers(ordinal, port) or self.leaving(ordinal, port))

    @property
    def levels(self) -> int:
        return max((s.level for s in self.steps), default=0)

    def counts(self, source: Step) -> bool:
        """Whether a source's time counts in the watermark. That of a table does where rows are enriched as of their
        time, where its changes become rows of a stream, and where there are only tables; also where views are told of
        rows whose time to live is up, since a record that renews one must not be missed for a stream that is ahead. A
        table that is asked for its current value holds nobody up."""
        if isinstance(source.node, Read) or not any(isinstance(s.node, Read) for s in self.sources):
            return True
        return any(_waits_for_versions(s.node) for s in self._changed_by(source))

    def _changed_by(self, source: Step) -> tuple[Step, ...]:
        """The steps that a table's versions or its changes reach."""
        reached = {source.ordinal}
        for step in self.steps:  # in the order data walks them
            if any(
                at.step in reached and isinstance(self.step(at.step).node, ReadTable | Changing) for at in step.inputs
            ):
                reached.add(step.ordinal)
        return tuple(s for s in self.steps if s.ordinal in reached)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All flows of an app."""

    app: str
    version: str
    flows: tuple[Flow, ...]


def build(app: App) -> Plan:
    """Orders and names what `app` declared; only steps that reach an output are part of the plan."""
    if not app.outputs:
        raise BadApp(f"{app.name} has no output", why="nothing it computes would be seen",
                     fix='send a stream somewhere: stream.to(app.topic("..."))', where=app.where)  # fmt: skip
    walk = _Walk()
    exits = tuple(walk.exit(number, output) for number, output in enumerate(app.outputs))
    _check_shapes(app, exits)
    flows = _connected(walk.steps, exits)
    for flow in flows:
        _check_read_once(flow)
        _check_no_circle(app, flow)
    return Plan(app=app.name, version=app.version, flows=flows)


def _check_shapes(app: App, exits: tuple[Exit, ...]) -> None:
    """Whoever reads a topic or a store must know what a row of it looks like."""
    shapes: dict[str, Exit] = {}
    for leaving, output in zip(exits, app.outputs, strict=True):
        what = kind(leaving.target)
        first = shapes.setdefault(leaving.target.label, leaving)
        if (first.columns, first.form) != (leaving.columns, leaving.form):
            raise BadApp(
                f"the {what} {leaving.target.name!r} would get rows of two shapes",
                why=f"{_shape(first)} and {_shape(leaving)}",
                fix="send them to two places, or select the same columns first",
                where=output.where,
            )
        if first.guarantee != leaving.guarantee:
            raise BadApp(
                f"the {what} {leaving.target.name!r} would be written {first.guarantee} and {leaving.guarantee}",
                why="whoever reads it must know what its rows are worth",
                fix="say the same guarantee, or send them to two places",
                where=output.where,
            )


def _check_read_once(flow: Flow) -> None:
    """A query reads a topic once: each partition has one place in the log, and one frontier."""
    known: dict[str, Step] = {}
    for source in flow.sources:
        first = known.setdefault(topic_of(source), source)
        if first is not source:
            raise BadApp(
                f"the topic {topic_of(source)!r} is read twice in one flow",
                why=f"{first.name} and {source.name} read it, and a query has one frontier for each of its partitions",
                fix="declare it once and reuse it; .alias() names it anew where it meets itself",
                where=source.node.where,
            )


def _check_no_circle(app: App, flow: Flow) -> None:
    for leaving in flow.exits:
        if not leaving.stored and leaving.target.name in flow.topics:
            raise BadApp(
                f"the topic {leaving.target.name!r} is read and written by one flow",
                why="each row that is written would be read again, without end",
                fix="write to another topic",
                where=app.outputs[leaving.ordinal].where,
            )


def _shape(leaving: Exit) -> str:
    said = f"({', '.join(map(str, leaving.columns))})"
    return said if leaving.form == "rows" else f"{leaving.form} of {said}"


class _Walk:
    """Visits declared nodes depth first, each once, and numbers them in the order data walks them."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._at: dict[int, Input] = {}  # by identity: the same handle is the same step
        self._kinds: dict[str, int] = {}

    def exit(self, ordinal: int, output: Output) -> Exit:
        entry = self.visit(output.of)
        return Exit(
            ordinal=ordinal,
            input=entry,
            columns=output.of.columns,
            target=output.target,
            key=output.key,
            form=output.form,
            guarantee=output.guarantee,
            level=self.steps[entry.step].level,
        )

    def visit(self, node: Node) -> Input:
        if id(node) in self._at:
            return self._at[id(node)]
        if isinstance(node, declared.Side):
            found = Input(step=self.visit(node.of).step, port=node.port)
        else:
            found = Input(step=self._place(node))
        self._at[id(node)] = found
        return found

    def _place(self, node: Node) -> int:
        inputs = tuple(self.visit(of) for of in node.inputs)
        before = [(self.steps[entry.step], entry.port) for entry in inputs]
        step = Step(
            ordinal=len(self.steps),
            name=node.name or self._name(node),
            node=node,
            inputs=inputs,
            hold=max((one.hold + _holds(one.node, port) for one, port in before), default=ZERO),
            level=max((one.level for one, _ in before), default=0) + int(isinstance(node, STAGED)),
        )
        for one, _ in before:
            if one.by_clock and isinstance(node, TIMED):
                raise BadApp(f"{step.name} comes after {one.name}, which follows processing time",
                             why="results of a processing-time window have no event time to go by (rule W7)",
                             fix="let the first window follow event time", where=node.where)  # fmt: skip
        if any(s.name == step.name for s in self.steps):
            raise BadApp(f"two steps are called {step.name!r}", why="names make stable ids",
                         fix=_NAMED.get(type(node), '.named("...")'), where=node.where)  # fmt: skip
        self.steps.append(step)
        return step.ordinal

    def _name(self, node: Node) -> str:
        kind = _KIND[type(node)]
        self._kinds[kind] = self._kinds.get(kind, 0) + 1
        return f"{kind}-{self._kinds[kind]}"


_NAMED: dict[type, str] = {
    declared.Read: 'app.stream(..., name="...")',
    declared.ReadTable: 'app.table(..., name="...")',
    declared.Pattern: 'app.pattern("another", ...)',
    declared.Featured: 'app.features("another", ...)',
}
"""How those are named that do not take `.named(...)`."""
_KIND = {
    declared.Filter: "where",
    declared.Project: "select",
    declared.MapRows: "map",
    declared.FilterRows: "where",
    declared.Dedup: "dedup",
    declared.Changed: "changed",
    declared.Aggregated: "window",
    declared.Union: "union",
    declared.Joined: "join",
    declared.Enriched: "enrich",
    declared.LookedUp: "enrich",
    declared.Decided: "decide",
    changing.ViewFilter: "where",
    changing.ViewProject: "select",
    changing.ViewJoin: "links",
    changing.Settled: "view",
    changing.Grouped: "group",
    changing.ChangeRows: "changes",
    declared.Pattern: "pattern",
}


def _waits_for_versions(node: Node) -> bool:
    """Whether a step that a table's versions reach needs all of them up to the watermark."""
    if isinstance(node, changing.Versions):
        return node.of.ttl is not None
    return isinstance(node, changing.ChangeRows) or (isinstance(node, declared.Enriched) and node.as_of)


def _holds(node: Node, port: str) -> timedelta:
    """How much later than the watermark a step may still emit (rule T6): a window holds its lateness, a join the time
    that a row waits for its partner, if it comes out alone after it. A match may wait for one that began before it, at
    most `within`, unless it takes nothing with it; a timeout comes with its bound."""
    if isinstance(node, declared.Aggregated):
        return ZERO if isinstance(node.window, Forever) else node.lateness
    if isinstance(node, declared.Joined):
        left, right = max(node.upper, ZERO), max(-node.lower, ZERO)
        if port == "unmatched":
            return max(left, right)
        return max(
            left if node.how in ("left", "full", "semi", "anti") else ZERO,
            right if node.how in ("right", "full") else ZERO,
        )
    if isinstance(node, declared.Pattern) and port == "rows" and node.after != "none":
        return node.within
    return ZERO


def _connected(steps: list[Step], exits: tuple[Exit, ...]) -> tuple[Flow, ...]:
    """Flows by union of each step with its inputs."""
    root = list(range(len(steps)))

    def top(at: int) -> int:
        while root[at] != at:
            at = root[at]
        return at

    for step in steps:
        for entry in step.inputs:
            root[top(step.ordinal)] = top(entry.step)
    flows = []
    for home in dict.fromkeys(top(s.ordinal) for s in steps):
        own = tuple(s for s in steps if top(s.ordinal) == home)
        name = "+".join(s.name for s in own if not s.inputs)
        flows.append(Flow(name=name, steps=own, exits=tuple(e for e in exits if top(e.input.step) == home)))
    return tuple(flows)


def topic_of(source: Step) -> str:
    """The topic that a source reads."""
    assert isinstance(source.node, Read | ReadTable)
    return source.node.event.topic


def slice_of(window: Tumbling | Hopping) -> timedelta:
    """The piece of time that whole windows are made of: every row lies in exactly one slice."""
    if isinstance(window, Tumbling):
        return window.size
    left, right = window.size, window.every
    while right:
        left, right = right, left % right
    return left
