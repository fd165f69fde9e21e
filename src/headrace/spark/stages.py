"""Stages: where rows are handed over to a kernel (one transformWithState per level), to Python or to a policy."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pyspark.sql.functions as sf

from headrace.base.duration import millis
from headrace.expr.types import Columns
from headrace.model import declared
from headrace.model.changing import Changing
from headrace.plan.plan import CALLED, Flow, Plan, Step
from headrace.spark.chain import DEAD, PORTS, Chain, ddl, entering, given
from headrace.spark.changes import payloads
from headrace.spark.columns import column, fault
from headrace.spark.deciding import place_of
from headrace.spark.letters import grave, no_record, topic_of
from headrace.spark.routes import CHAIN
from headrace.spark.workers import applied, returned
from headrace.steps.spec import step_of

GIVING = (declared.Joined, declared.Enriched, declared.Featured, declared.Pattern)
"""Steps whose kernels give rows, beside those over tables."""


def staged(
    chain: Chain, plan: Plan, flow: Flow, steps: list[Step], frame: Any, home: str, arrival: bool, in_place: bool
) -> Any:
    """The frame behind the stages of one level; rows of other steps pass by untouched. `in_place`: its rows lie where
    their keys belong already (places.py)."""
    decided = {s.ordinal: s.node for s in steps if isinstance(s.node, declared.Decided)}
    if decided:
        frame = _decided(chain, decided, frame, home)
    kernels = [s for s in steps if s.kernel]
    # Spark fires event-time or processing-time timers in one operator, not both.
    for clock in (False, True):
        chosen = [s for s in kernels if s.by_clock is clock]
        if chosen:
            frame = _kernel(chain, plan, flow, chosen, frame, clock, arrival, in_place)
            in_place = True  # rows for both were placed by the first
    functions = [s for s in steps if isinstance(s.node, CALLED)]
    return _functions(chain, flow, functions, frame) if functions else frame


def _decided(chain: Chain, nodes: dict[int, declared.Decided], frame: Any, home: str) -> Any:
    """Payloads of these steps, each with what the step's policy says of it."""
    payload = sf.col("payload")
    for ordinal, node in nodes.items():
        said = chain.decide(sf.col("payload"), place_of(home, ordinal), node)
        payload = sf.when(sf.col("step") == ordinal, said).otherwise(payload)
    return frame.withColumn("payload", payload)


def _kernel(
    chain: Chain, plan: Plan, flow: Flow, steps: list[Step], frame: Any, clock: bool, arrival: bool, in_place: bool
) -> Any:
    """One transformWithState for all these steps: it groups by (step, key)."""
    from pyspark.sql import DataFrame

    spec = {
        "app": plan.app,
        "version": plan.version,
        "flow": flow.name,
        "topics": flow.topics,
        "by_clock": clock,
        "in_place": in_place,
        "steps": [_step(flow, step, arrival) for step in steps],
    }
    conditions = {step.ordinal: [c._jc for c in _conditions(step.node)] for step in steps}
    return DataFrame(chain.spark.jvm.Stage.apply(frame._jdf, json.dumps(spec), conditions), chain.spark.session)


def _conditions(node: declared.Node) -> list[Any]:
    """Those that the kernel itself asks."""
    if isinstance(node, declared.Aggregated) and node.having is not None:
        return [_condition(node.having, node.columns)]
    if isinstance(node, declared.Pattern):
        return [_condition(asked.test, (*node.layout, *asked.slots)) for asked in node.conditions]
    return []


def _condition(test: Any, columns: Columns) -> Any:
    """What does not fit is not true."""
    values = {c.name: sf.col(f"`{c.name}`") for c in columns}
    misfit = fault(test, values)
    return column(test, values) if misfit is None else sf.when(misfit.isNull(), column(test, values))


def _step(flow: Flow, step: Step, arrival: bool) -> dict[str, Any]:
    """What the kernel is told of a step (jvm/Stage.scala)."""
    node = step.node
    read = [port for port, _ in step.ports if flow.reads(step.ordinal, port)]
    told: dict[str, Any] = {
        "ordinal": step.ordinal,
        "name": step.name,
        "hold_ms": millis(step.hold),
        "spec": step_of(node, unmatched="unmatched" in read, arrival=arrival)[1].as_json(),
        "inputs": [_fields(entering(step, number, flow)[0]) for number in range(len(step.inputs))],
        "emits": [PORTS[port] for port in read],
    }
    if isinstance(node, Changing):
        inputs, gives = payloads(node)
        return told | {"inputs": [_fields(columns) for columns in inputs], "ports": {PORTS["rows"]: _fields(gives)}}
    if isinstance(node, declared.Pattern):
        told["asked"] = [_fields(asked.slots) for asked in node.conditions]
    if isinstance(node, GIVING):
        # What nobody reads is not even made; rows always are, since their port is what makes it a step that gives rows.
        return told | {"ports": {PORTS[port]: _fields(given(node, port)) for port in dict.fromkeys(("rows", *read))}}
    keys = len(node.keys) if isinstance(node, declared.Aggregated) else 0
    return told | {"output": _fields(node.columns), "keys": keys}


def _fields(columns: Columns) -> list[dict[str, Any]]:
    return [{"name": c.name, "type": str(c.type), "nullable": c.nullable} for c in columns]


def _functions(chain: Chain, flow: Flow, steps: list[Step], frame: Any) -> Any:
    """The user's functions, all of a level in one Python worker per task; a row that one fails on is a dead letter
    (rule B2). Spark asks a Python function for every row, whatever CASE it stands in: so a row is told to the function
    of its own step, and to the others as null."""
    place = sf.concat_ws("/", topic_of(flow, sf.col("src")), "part", "off")
    calls, rows, error, failed, value = (
        [],
        sf.lit(None).cast("array<binary>"),
        sf.lit(None),
        sf.lit(False),
        sf.lit(None),
    )
    for step in steps:
        node = step.node
        assert isinstance(node, CALLED)
        mine, arriving = sf.col("step") == step.ordinal, chain.unpacked(ddl(node.of.columns))
        made = f"_made_{step.ordinal}"
        calls.append(applied(node, mine, arriving, place).alias(made))
        broken = sf.col(f"{made}.error").isNotNull()
        if isinstance(node, declared.MapRows):
            packed = sf.transform(f"{made}.rows", partial(_packed, chain, node.columns))
            broken = chain.counted(broken, step.ordinal, "dead", "used")
        else:
            kept = chain.counted(sf.size(f"{made}.rows") > 0, step.ordinal, "used", "filtered")
            packed = sf.when(~broken, sf.when(kept, sf.array("payload")).otherwise(sf.array().cast("array<binary>")))
            broken = chain.counted(broken, step.ordinal, "dead", "")
        told = chain.json([arriving[c.name].alias(c.name) for c in node.of.columns])
        rows = sf.when(mine, packed).otherwise(rows)
        error = sf.when(mine, sf.col(f"{made}.error")).otherwise(error)
        failed = sf.when(mine, broken).otherwise(failed)
        value = sf.when(mine, told).otherwise(value)
    judged = frame.select("*", *calls).select(
        *CHAIN, rows.alias("_rows"), error.alias("_error"), failed.alias("_failed")
    )
    each = judged.select("*", sf.posexplode_outer("_rows").alias("_number", "_row"))
    kept = each.where("_rows is null or _failed or _row is not null")
    dead, result = sf.col("_failed"), sf.col("_row").isNotNull()
    words = sf.concat(sf.lit("function: "), sf.col("_error"))
    letter = chain.pack([grave(flow, sf.col("src")), value, words, *no_record()])
    many = sf.col("step").isin([s.ordinal for s in steps if isinstance(s.node, declared.MapRows) and s.node.many])
    changed = {
        "step": sf.when(dead, sf.lit(DEAD)).otherwise(sf.col("step")),
        "id": sf.when(result & many, chain.numbered(sf.col("id"), sf.col("_number"))).otherwise(sf.col("id")),
        "payload": sf.when(dead, letter).otherwise(sf.coalesce("_row", "payload")),
    }
    return kept.select(*(changed.get(name, sf.col(name)).alias(name) for name in CHAIN))


def _packed(chain: Chain, columns: Columns, row: Any) -> Any:
    return chain.pack(returned(row, columns))
