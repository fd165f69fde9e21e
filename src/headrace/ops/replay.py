"""Replay: an app over history, into topics and stores of its own, beside the live version (rule R6)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from headrace.base.settings import Settings
from headrace.model.app import App
from headrace.model.output import beside
from headrace.model.topic import Topic
from headrace.ops import endpoints
from headrace.ops.run import AppRun, Say, Tell, job_of, launch, make_topics
from headrace.plan.horizon import horizon
from headrace.plan.plan import Plan, build
from headrace.spark.job import Job, Span
from headrace.spark.session import Spark


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What a replay will do: shown before it starts."""

    plan: Plan
    into: str
    start: datetime | None
    read_from: datetime | None
    until: datetime | None

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(leaving.target.label for flow in self.plan.flows for leaving in flow.exits)


def plan_replay(app: App, *, into: str, start: datetime | None, until: datetime | None) -> Replay:
    """Reads from before `start`, as far back as state reaches, so that the first results are whole."""
    plan = _into(build(app), into)
    back = max(horizon(flow) for flow in plan.flows)
    return Replay(plan=plan, into=into, start=start, read_from=start and start - back, until=until)


def replay(
    chosen: Replay,
    settings: Settings,
    *,
    spark: Spark | None = None,
    say: Say = lambda _: None,
    tell: Tell = lambda _: None,
) -> AppRun:
    """Starts the replay; it ends by itself when history is read and everything has closed."""
    plan = chosen.plan

    def jobs() -> list[Job]:
        targets = (leaving.target for flow in plan.flows for leaving in flow.exits)
        topics = (target for target in targets if isinstance(target, Topic))
        make_topics(endpoints.broker(settings), plan, topics, say)
        span = Span(start=chosen.read_from, until=chosen.until, emit_from=chosen.start)
        return [job_of(plan, flow, settings, "history", span=span) for flow in plan.flows]

    return launch(plan, jobs, settings, mode="history", spark=spark, say=say, tell=tell)


def _into(plan: Plan, name: str) -> Plan:
    """The same plan as a version of its own: outputs carry its name, ids and state are apart."""
    flows = tuple(
        replace(flow, exits=tuple(replace(e, target=beside(e.target, name)) for e in flow.exits)) for flow in plan.flows
    )
    return replace(plan, version=name, flows=flows)
