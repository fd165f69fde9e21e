"""The engine: one flow of a plan, batch by batch (rule R1); `run` for a whole schedule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headrace.base.duration import millis
from headrace.base.errors import UsageError
from headrace.model import changing, declared
from headrace.model.policy import Policy
from headrace.plan.plan import Flow, Plan, Step, topic_of
from headrace.reference import view
from headrace.reference.batch import Batch, Dead, Record, Travelling
from headrace.reference.counts import Counts
from headrace.reference.decided import Decided
from headrace.reference.features import Features
from headrace.reference.joined import Enriched, Joined, LookedUp
from headrace.reference.keyed import Changed, Dedup, Windowed
from headrace.reference.operator import Moment, Operator, Setting, Source
from headrace.reference.pattern import Pattern
from headrace.reference.stateless import Filter, FilterRows, Leaving, MapRows, Project, Union


class Engine:
    """Runs a flow. Steps stand in the order data walks them, so that what one emits meets the next in the same batch,
    whether a row or time made it."""

    def __init__(self, plan: Plan, flow: Flow, *, keep_aside: bool = False, arrival: bool = False) -> None:
        self.flow = flow
        self._setting = Setting(plan, flow, topics_of(flow), keep_aside, arrival)
        self._operators = {step.ordinal: _operator(step, self._setting) for step in flow.steps}
        self._exits = [Leaving(exit, self._setting) for exit in flow.exits]
        self._sources: list[list[Source]] = [[] for _ in self._setting.topics]
        for operator in self._operators.values():
            if isinstance(operator, Source):
                self._sources[self._setting.topics.index(topic_of(operator.step))].append(operator)
            for entry, inbox in zip(operator.step.inputs, operator.inboxes, strict=True):
                self._operators[entry.step].readers[entry.port].append(inbox)
        for exit, leaving in zip(flow.exits, self._exits, strict=True):
            self._operators[exit.input.step].readers[exit.input.port].append(leaving.inbox)
        self.watermark: int | None = None

    def batch(self, batch: Batch) -> None:
        """Applies the rows under the watermark so far, then moves it."""
        moment = Moment(self.watermark, _later(self.watermark, batch.watermark), batch.clock)
        for arrival in batch.rows:
            for source in self._sources[arrival.source]:
                source.arrivals.append(arrival)
        for operator in self._operators.values():
            operator.run(moment)
        for leaving in self._exits:
            leaving.run()
        self.watermark = moment.watermark

    def publish(self, name: str, policy: Policy, seen: str, *, shadow: bool) -> None:
        """Lets steps that decide by the policy of that name go by this one, from the next batch on."""
        for operator in self._operators.values():
            if isinstance(operator, Decided) and operator.policy == name:
                operator.publish(policy, seen, shadow=shadow)

    @property
    def records(self) -> list[Record]:
        """Everything that left, in order."""
        return self._setting.records

    @property
    def dead(self) -> list[Dead]:
        return self._setting.dead

    @property
    def aside(self) -> dict[tuple[str, str], list[Travelling]]:
        """Late rows and duplicates by (step, port), if they were to be kept."""
        return self._setting.aside

    @property
    def topics(self) -> tuple[str, ...]:
        return self._setting.topics

    @property
    def tables(self) -> set[str]:
        """The topics of tables among them."""
        return {topic_of(step) for step in self.flow.sources if isinstance(step.node, declared.ReadTable)}

    def counts(self) -> dict[str, Counts]:
        """Totals by step; `held` is now."""
        return {operator.name: operator.total for operator in self._operators.values()}

    def last_counts(self) -> dict[str, Counts]:
        """Those of the last batch alone."""
        return {operator.name: operator.counts for operator in self._operators.values()}


def run(plan: Plan, schedule: Mapping[str, Iterable[Batch]] | Iterable[Batch]) -> list[Record]:
    """Runs whole schedules, one for each flow by its name; a plan of one flow takes the batches alone."""
    if not isinstance(schedule, Mapping):
        if len(plan.flows) != 1:
            names = ", ".join(repr(flow.name) for flow in plan.flows)
            raise UsageError(
                f"{plan.app} has {len(plan.flows)} flows",
                why="each has its own watermark, so each has its own schedule",
                fix=f"give a schedule for each of {names}",
            )
        schedule = {plan.flows[0].name: schedule}
    records: list[Record] = []
    for flow in plan.flows:
        engine = Engine(plan, flow)
        for batch in schedule.get(flow.name, ()):
            engine.batch(batch)
        records += engine.records
    return records


def topics_of(flow: Flow) -> tuple[str, ...]:
    """The topics a flow reads, sorted: an arrival's source is a place in here."""
    return tuple(sorted({topic_of(step) for step in flow.sources}))


def _operator(step: Step, setting: Setting) -> Operator:
    node = step.node
    match node:
        case declared.Read() | declared.ReadTable():
            return Source(step, setting, millis(node.skew))
        case declared.Filter():
            return Filter(step, setting, node)
        case declared.Project():
            return Project(step, setting, node)
        case declared.MapRows():
            return MapRows(step, setting, node)
        case declared.FilterRows():
            return FilterRows(step, setting, node)
        case declared.Dedup():
            return Dedup(step, setting, node)
        case declared.Changed():
            return Changed(step, setting, node)
        case declared.Aggregated():
            return Windowed(step, setting, node)
        case declared.Union():
            return Union(step, setting, node)
        case declared.Joined():
            return Joined(step, setting, node)
        case declared.Enriched():
            return Enriched(step, setting, node)
        case declared.LookedUp():
            return LookedUp(step, setting, node)
        case changing.Versions():
            return view.Versions(step, setting, node)
        case changing.ViewFilter() | changing.ViewProject():
            return view.Reshaped(step, setting, node)
        case changing.ViewJoin():
            return view.ViewJoin(step, setting, node)
        case changing.Settled():
            return view.Settled(step, setting, node)
        case changing.Grouped():
            return view.Grouped(step, setting, node)
        case changing.ChangeRows():
            return view.ChangeRows(step, setting, node)
        case declared.Featured():
            return Features(step, setting, node)
        case declared.Decided():
            return Decided(step, setting, node)
        case declared.Pattern():
            return Pattern(step, setting, node)
    raise AssertionError(f"{node} is no step of its own")


def _later(one: int | None, other: int | None) -> int | None:
    """A watermark never goes back (rule T4)."""
    if one is None or other is None:
        return other if one is None else one
    return max(one, other)
