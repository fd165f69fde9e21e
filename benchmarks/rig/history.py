"""An app over all of history, in the Spark of this process: what a benchmark runs beside something else."""

from __future__ import annotations

from collections.abc import Callable

import headrace as hr
from headrace.base.settings import Settings
from headrace.log.broker import Broker
from headrace.observe.snapshot import FlowSnapshot
from headrace.ops.run import make_topics
from headrace.ops.stores import stores_of
from headrace.plan.plan import build
from headrace.spark.checkpoint import Checkpoint
from headrace.spark.query import Job, Running
from rig import spark


def read_through(
    app: hr.App, broker: Broker, settings: Settings, tell: Callable[[FlowSnapshot], None] = lambda _: None
) -> None:
    """Runs the app's one flow until everything is read and closed."""
    plan = build(app)
    (flow,) = plan.flows
    make_topics(broker, plan, app.topics, lambda _: None)
    job = Job(
        plan=plan,
        flow=flow,
        mode="history",
        broker=broker,
        checkpoint=Checkpoint.of(settings.home, plan, flow),
        stores=stores_of(flow, settings),
    )
    running = Running(spark.session(), job, tell)
    running.wait()
    if running.error:
        raise running.error
