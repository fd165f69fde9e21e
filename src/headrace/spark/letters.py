"""Dead letters on the chain (rule B1): what is kept of a row that cannot be used, and the record it becomes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any

import pyspark.sql.functions as sf

from headrace.plan.plan import Flow, Plan
from headrace.spark.chain import header

_HEADERS = "array<struct<key: string, value: binary>>"
RECORD = f"topic string, value binary, reason string, key binary, headers {_HEADERS}"
"""The payload of a dead row: a whole record, and "reason: details"."""


def letter(plan: Plan, flow: Flow, words: Any, key: Any, headers: Any) -> tuple[Any, Any]:
    """Key and headers of a dead letter: after its own headers, where it stood and why it died.

    A row that a step made stands nowhere in the log: its partition is -1, its offset a hash of what it is known by,
    so that it has a name of its own all the same.
    """
    made = sf.col("id").isNotNull()
    partition = sf.when(made, sf.lit(-1)).otherwise(sf.col("part"))
    named = sf.xxhash64("src", "part", "off", "id").bitwiseAND(sf.lit(2**63 - 1))
    offset = sf.when(made, named).otherwise(sf.col("off"))
    topic = topic_of(flow, sf.col("src"))
    reason = sf.substring_index(words, ": ", 1)
    told: Mapping[str, Any] = {
        "hr-dead-app": sf.lit(plan.app),
        "hr-dead-topic": topic,
        "hr-dead-partition": partition.cast("string"),
        "hr-dead-offset": offset.cast("string"),
        "hr-dead-reason": reason,
        "hr-dead-error": sf.substr(words, sf.length(reason) + 3),
    }
    none = sf.array().cast(_HEADERS)
    marks = sf.array(*(header(name, value.cast("binary")) for name, value in told.items()))
    own_key = sf.when(key.isNotNull(), sf.array(header("hr-dead-key", key))).otherwise(none)
    place = sf.concat_ws("/", sf.lit(plan.app), topic, partition, offset).cast("binary")
    return place, sf.concat(sf.coalesce(headers, none), marks, own_key)


def no_record() -> tuple[Any, Any]:
    """Key and headers of a row that is no longer the record it came from."""
    return sf.lit(None).cast("binary"), sf.lit(None).cast(_HEADERS)


def grave(flow: Flow, source: Any) -> Any:
    """The name of the topic where such a row is buried."""
    return sf.concat(topic_of(flow, source), sf.lit(".dead"))


def topic_of(flow: Flow, source: Any) -> Any:
    """The name of a row's topic; what a step made belongs to the flow's first."""
    first, *others = flow.topics
    return reduce(
        lambda name, other: sf.when(source == other[0], sf.lit(other[1])).otherwise(name),
        enumerate(others, 1),
        sf.lit(first),
    )
