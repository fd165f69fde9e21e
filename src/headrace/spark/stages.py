"""Stages: where rows are handed over to a kernel (one transformWithState per level) or to Python."""

from __future__ import annotations

import json
from typing import Any

import pyspark.sql.functions as sf

from headrace.base.duration import millis
from headrace.expr.types import Columns
from headrace.model import declared
from headrace.plan.plan import Flow, Plan, Step
from headrace.spark.chain import DEAD, Chain, ddl, entering
from headrace.spark.columns import column
from headrace.spark.routes import CHAIN
from headrace.spark.workers import applied, returned
from headrace.steps.spec import step_of


def staged(chain: Chain, plan: Plan, flow: Flow, steps: list[Step], frame: Any) -> Any:
    """The frame behind the stages of one level; rows of other steps pass by untouched."""
    kernels = [s for s in steps if not isinstance(s.node, declared.MapRows)]
    # Spark fires event-time or processing-time timers in one operator, not both.
    for clock in (False, True):
        chosen = [s for s in kernels if s.by_clock is clock]
        if chosen:
            frame = _kernel(chain, plan, flow, chosen, frame, clock)
    for step in steps:
        if isinstance(step.node, declared.MapRows):
            frame = _python(chain, plan, flow, step, step.node, frame)
    return frame


def _kernel(chain: Chain, plan: Plan, flow: Flow, steps: list[Step], frame: Any, clock: bool) -> Any:
    """One transformWithState for all these steps: it groups by (step, key)."""
    from pyspark.sql import DataFrame

    spec = {
        "app": plan.app,
        "version": plan.version,
        "flow": flow.name,
        "topics": [s.node.event.topic for s in flow.by_topic if isinstance(s.node, declared.Read)],
        "by_clock": clock,
        "steps": [_step(flow, step) for step in steps],
    }
    having = {
        step.ordinal: column(step.node.having, {c.name: sf.col(c.name) for c in step.node.columns})._jc
        for step in steps
        if isinstance(step.node, declared.Aggregated) and step.node.having is not None
    }
    return DataFrame(chain.spark.jvm.Stage.apply(frame._jdf, json.dumps(spec), having), chain.spark.session)


def _step(flow: Flow, step: Step) -> dict[str, Any]:
    node = step.node
    assert isinstance(node, declared.Aggregated | declared.Dedup)
    columns, _, keys = entering(step, flow)
    _, spec = step_of(node)
    return {
        "ordinal": step.ordinal,
        "name": step.name,
        "hold_ms": millis(step.hold),
        "spec": spec.as_json(),
        "input": _fields(columns),
        "output": _fields(node.columns),
        "keys": len(keys) if isinstance(node, declared.Aggregated) else 0,
        "emits_late": flow.reads(step.ordinal, "late"),
        "emits_duplicates": flow.reads(step.ordinal, "duplicates"),
    }


def _fields(columns: Columns) -> list[dict[str, Any]]:
    return [{"name": c.name, "type": str(c.type), "nullable": c.nullable} for c in columns]


def _python(chain: Chain, plan: Plan, flow: Flow, step: Step, node: declared.MapRows, frame: Any) -> Any:
    """The user's function on this step's rows; a row it fails on becomes a dead letter (rule B2)."""
    arriving = chain.unpacked(ddl(node.of.columns))
    mine = sf.col("step") == step.ordinal
    made = sf.when(mine, applied(node, arriving, node.of.columns))
    called = frame.select("*", made.alias("_made"))
    failed = chain.counted(sf.col("_made.error").isNotNull(), step.ordinal, "dead", "used")
    judged = called.select("*", sf.when(mine, failed).otherwise(sf.lit(False)).alias("_failed"))
    each = judged.select("*", sf.posexplode_outer("_made.rows").alias("_number", "_row"))
    kept = each.where("_made is null or _failed or _row is not null")
    result, broken = (sf.col("_made").isNotNull() & ~sf.col("_failed")), sf.col("_failed")
    topic = next(s.node.event.topic for s in flow.by_topic if isinstance(s.node, declared.Read))
    nothing = sf.lit(None)
    letter = chain.pack(
        [
            sf.lit(f"{topic}.dead"),
            chain.json([arriving[c.name].alias(c.name) for c in node.of.columns]),
            sf.concat(sf.lit("function: "), sf.col("_made.error")),
            nothing.cast("binary"),
            nothing.cast("array<struct<key: string, value: binary>>"),
        ]
    )
    place = sf.concat_ws("/", sf.lit(plan.app), sf.lit(topic), "part", "off").cast("binary")
    changed = {
        "step": sf.when(broken, sf.lit(DEAD)).otherwise(sf.col("step")),
        "key": sf.when(broken, place).otherwise(sf.col("key")),
        "id": sf.when(result, chain.numbered(sf.col("_number"))).otherwise(sf.col("id")) if node.many else sf.col("id"),
        "payload": sf.when(broken, letter)
        .when(result, chain.pack(returned(sf.col("_row"), node.columns)))
        .otherwise(sf.col("payload")),
    }
    return kept.select(*(changed.get(name, sf.col(name)).alias(name) for name in CHAIN))
