"""From a declared node to the step that runs it: its module and its spec, the same for every engine."""

from __future__ import annotations

from datetime import timedelta
from types import ModuleType
from typing import Any

from headrace.base.clock import MICROSECOND
from headrace.base.duration import millis
from headrace.expr.types import DecimalType
from headrace.model import changing, declared, matched
from headrace.model.aggregate import Bound
from headrace.model.window import AtClose, Emit, Hopping, Session, Sliding, Tumbling
from headrace.steps import (
    aggregate,
    as_of,
    changed,
    changelog,
    current,
    dedup,
    features,
    forever,
    interval_join,
    pattern,
    plain,
    session,
    settle,
    slices,
    sliding,
    table,
    view_join,
)
from headrace.steps.emission import Policy
from headrace.steps.pattern_slots import Slot
from headrace.steps.pattern_steps import Criterion, Group, Step

DELETED = timedelta(days=1)
"""How long a table remembers a deletion, so that an older version that comes late does not undo it."""


def remembered(read: declared.ReadTable) -> timedelta:
    """The same of a table whose rows may have a time to live: an older version has outlived it after that."""
    return DELETED if read.ttl is None else min(DELETED, read.ttl)


def step_of(
    node: declared.Node, *, unmatched: bool = False, arrival: bool = False, topics: tuple[str, ...] = ()
) -> tuple[ModuleType, Any]:
    """The step's module (`State`, `step`, `on_time`, `due`) and its spec. `unmatched`: somebody asks a join for the
    rows without partner. `arrival`: in real time, where a pattern's rows have their turn as they come (rule P1).
    `topics`: the flow's, for features that say what they have seen."""
    match node:
        case declared.Dedup():
            return dedup, dedup.Spec(within=_micros(node.within))
        case declared.Changed():
            names = [column.name for column in node.of.columns]
            return changed, changed.Spec(keep=_micros(node.keep), values=tuple(map(names.index, node.values)))
        case declared.Joined():
            bounds = {"lower": _micros(node.lower), "upper": _micros(node.upper)}
            return interval_join, interval_join.Spec(how=node.how, unmatched=unmatched, **bounds)
        case declared.Enriched(as_of=True):
            assert node.table.history is not None
            return as_of, as_of.Spec(history=_micros(node.table.history), wait=node.wait, ttl=_ttl(node.table))
        case declared.Enriched():
            return current, current.Spec(keep=_micros(remembered(node.table)), ttl=_ttl(node.table))
        case declared.Featured():
            return features, _features(node, topics)
        case declared.Pattern():
            return pattern, _pattern(node, arrival)
        case declared.Aggregated():
            return _window(node)
        case changing.Versions():
            return table, table.Spec(keep=_micros(remembered(node.of)), ttl=_ttl(node.of))
        case changing.ViewJoin():
            return view_join, view_join.Spec(outer=node.outer, width=len(node.right.columns))
        case changing.Settled():
            return settle, settle.Spec(keep=_micros(DELETED))
        case changing.Grouped():
            aggregates = tuple(_aggregate(value) for value in node.values)
            return changelog, changelog.Spec(keep=_micros(DELETED), aggregates=aggregates)
    raise AssertionError(f"{node} is no step with state")


def _window(node: declared.Aggregated) -> tuple[ModuleType, Any]:
    window = node.window
    values: dict[str, Any] = {
        "having": node.having is not None,
        "aggregates": tuple(_aggregate(value) for value in node.values),
    }
    if isinstance(window, Sliding):
        return sliding, sliding.Spec(size=_micros(window.size), lateness=_micros(node.lateness), **values)
    values["emit"] = _policy(node.emit)
    if isinstance(window, Session):
        return session, session.Spec(gap=_micros(window.gap), lateness=_micros(node.lateness), **values)
    if isinstance(window, Tumbling | Hopping):
        return slices, slices.Spec(
            size=_micros(window.size),
            every=_micros(window.every if isinstance(window, Hopping) else window.size),
            offset=_micros(window.offset),
            lateness=_micros(node.lateness),
            by_clock=window.time == "processing",
            **values,
        )
    return forever, forever.Spec(ttl=0 if window.ttl is None else _micros(window.ttl), **values)


def _features(node: declared.Featured, topics: tuple[str, ...]) -> features.Spec:
    asked = [node.asked(number) for number in range(len(node.inputs))]
    return features.Spec(
        windows=tuple(
            features.Window(
                size=_micros(over.size),
                delay=_micros(over.delay),
                aggregates=tuple(map(_aggregate, over.values)),
                places=tuple(-1 if v.argument is None else asked[over.input].index(v.argument) for v in over.values),
                input=over.input,
                tile=_micros(over.tile),
            )
            for over in node.overs
        ),
        last=tuple((asked[0].index(ref), one.n) for one, (_, ref) in zip(node.before, node.before_refs, strict=True)),
        ttl=_micros(node.ttl),
        lateness=_micros(node.lateness),
        most=node.most,
        kept=tuple(map(node.kept, range(len(node.inputs)))),
        once="" if node.once is None else plain.kind(node.once.type),
        seen=node.seen,
        topics=topics,
    )


def _pattern(node: declared.Pattern, arrival: bool) -> pattern.Spec:
    places = {column.name: place for place, column in enumerate(node.layout)}
    return pattern.Spec(
        steps=tuple(map(_taking, node.steps)),
        within=_micros(node.within),
        after=node.after,
        to=node.to,
        arrival=arrival,
        limit=node.limit,
        asks=tuple(tuple(_slot(ask, places) for ask in condition.asks) for condition in node.conditions),
        output=tuple(_slot(ask, places) for ask in node.asks),
    )


def _taking(item: matched.Step | matched.Group) -> Step | Group:
    often: dict[str, Any] = {
        "how": item.how,
        "least": item.least,
        "most": item.most,
        "optional": item.optional,
        "inner": item.inner,
        "within": None if item.within is None else _micros(item.within),
    }
    if isinstance(item, matched.Group):
        return Group(steps=tuple(map(_taking, item.steps)), **often)
    until = None if item.until is None else _criterion(item.until)
    return Step(name=item.name, criterion=_criterion(item.fit), greedy=item.greedy, until=until, **often)


def _criterion(fit: matched.Fit) -> Criterion:
    return Criterion(flag=fit.flag, condition=fit.condition)


def _slot(ask: Any, places: dict[str, int]) -> Slot:
    return Slot(
        fn=ask.fn,
        step=ask.step,
        column=None if ask.column is None else places[ask.column],
        of="" if ask.of is None else plain.kind(ask.of),
        precision=ask.type.precision if isinstance(ask.type, DecimalType) else 0,
    )


def _aggregate(value: Bound) -> aggregate.Spec:
    of = None if value.argument is None else value.argument.type
    return aggregate.Spec(
        name=value.name,
        kind=value.kind,
        of="" if of is None else plain.kind(of),
        scale=of.scale if isinstance(of, DecimalType) else 0,
        precision=value.type.precision if isinstance(value.type, DecimalType) else 0,
        n=value.n,
        q=value.q,
    )


def _policy(emit: Emit) -> Policy:
    if isinstance(emit, AtClose):
        return Policy(early=0 if emit.early is None else millis(emit.early))
    return Policy(on_change=True)


def _ttl(read: declared.ReadTable) -> int:
    return 0 if read.ttl is None else _micros(read.ttl)


def _micros(value: timedelta) -> int:
    return value // MICROSECOND
