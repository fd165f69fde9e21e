"""Rows for stores on the chain: the payload that leaves a view, and the column that the sink stages.

A staged row has its own columns, then those that its target has as `extra` (stores/staged.py). On the chain a row of a
stream is packed as for a topic; one of a view has `_gone` beside its columns, since a deletion needs the typed key.
"""

from __future__ import annotations

from typing import Any

import pyspark.sql.functions as sf

from headrace.expr.types import BOOL, Column
from headrace.model import target
from headrace.model.declared import KIND
from headrace.model.target import Target
from headrace.plan.plan import Exit, Flow, Plan
from headrace.spark.chain import Chain
from headrace.spark.changes import Change
from headrace.steps.emission import RETRACTION

GONE = Column(target.GONE, BOOL)


def column_of(flow: Flow, leaving: Exit) -> str:
    """The name of the sink's column for this store."""
    return f"s{[store.target.label for store in flow.stores].index(leaving.target.label)}"


def payload(chain: Chain, leaving: Exit, change: Change) -> Any:
    """A view's row as it is now, or the key of one that has gone."""
    before, after = change.before, change.after
    key = {name for name, _ in leaving.key}
    values = [
        sf.when(after.there, after.values[c.name]).otherwise(before.values[c.name])
        if c.name in key
        else sf.when(after.there, after.values[c.name])
        for c in leaving.columns
    ]
    return chain.pack([*values, ~after.there])


def staged(chain: Chain, plan: Plan, flow: Flow, leaving: Exit) -> Any:
    """The payload as the store's column."""
    assert isinstance(leaving.target, Target)
    view = leaving.form == "upserts"
    row = chain.fields((*leaving.columns, GONE) if view else leaving.columns)
    retracted = row[KIND.name] == RETRACTION if leaving.retracts else sf.lit(False)
    beside = {
        target.GONE: row[target.GONE] if view else retracted,
        target.EVENT_TIME: sf.col("time"),
        target.ID: chain.stable_id(plan, flow, leaving).cast("string"),
    }
    named = {c.name: row[c.name] for c in leaving.columns} | {name: beside[name] for name in leaving.target.extra}
    return sf.struct(*(value.alias(name) for name, value in named.items()))
