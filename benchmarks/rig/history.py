"""An app over all of history, in the Spark of this process: what a benchmark runs beside something else."""

from __future__ import annotations

from collections.abc import Callable

import headrace as hr
from headrace.base.settings import Settings
from headrace.log.broker import Broker
from headrace.observe.snapshot import FlowSnapshot
from headrace.ops.run import job_of, launch, make_topics
from headrace.plan.plan import build
from rig import spark


def read_through(
    app: hr.App, broker: Broker, settings: Settings, tell: Callable[[FlowSnapshot], None] = lambda _: None
) -> None:
    """Runs the app until everything is read and closed."""
    plan = build(app)
    make_topics(broker, plan, app.topics, lambda _: None)
    jobs = [job_of(plan, flow, settings, "history") for flow in plan.flows]
    with launch(
        plan, lambda: jobs, settings, mode="history", spark=spark.session(), say=lambda _: None, tell=tell
    ) as run:
        run.wait()
