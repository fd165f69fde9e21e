"""How far back a flow's state reaches: a replay begins that much earlier, so that its first results are whole."""

from __future__ import annotations

from datetime import timedelta

from headrace.model import declared
from headrace.model.window import Hopping, Session, Sliding, Tumbling
from headrace.plan.plan import Flow, Step


def horizon(flow: Flow) -> timedelta:
    """The longest time from an event to the last result it takes part in. A session has no length of its own: one gap
    is counted, so a session that began earlier may be cut at the start."""
    disorder = max(_disorder(s) for s in flow.sources if flow.counts(s))
    return disorder + max((step.hold + _reach(step) for step in flow.steps), default=timedelta(0))


def _disorder(source: Step) -> timedelta:
    assert isinstance(source.node, declared.Read | declared.ReadTable)
    return source.node.disorder or timedelta(0)


def _reach(step: Step) -> timedelta:
    node = step.node
    if isinstance(node, declared.Dedup | declared.Pattern):
        return node.within
    if isinstance(node, declared.Changed):
        return node.keep
    if isinstance(node, declared.Joined):
        return max(abs(node.lower), abs(node.upper))
    if isinstance(node, declared.Featured):
        return node.lateness + (max(node.reach, node.ttl) if node.before else node.reach)
    if not isinstance(node, declared.Aggregated):
        return timedelta(0)
    window = node.window
    if isinstance(window, Tumbling | Hopping | Sliding):
        return window.size + node.lateness
    return (window.gap if isinstance(window, Session) else timedelta(0)) + node.lateness
