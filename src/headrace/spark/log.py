"""The log as Spark reads and writes it: the Scala source and sink under Python names."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from headrace.spark.session import Spark

SOURCE = "headrace.LogSource"
SINK = "headrace.CommitSink"


def read_log(spark: Spark, spec: Mapping[str, Any], client: Mapping[str, str]) -> Any:
    """A streaming frame over all topics of a query, its watermark set (rule T4).

    `spec` is what jvm/LogSpec.scala reads; `client` are options of the Java Kafka client.
    """
    reader = spark.session.readStream.format(SOURCE).option("spec", json.dumps(spec))
    for name, value in client.items():
        reader = reader.option(f"kafka.{name}", value)
    return reader.load().withWatermark("frontier", "0 seconds")


def write_log(spark: Spark, writer: Any, client: Mapping[str, str], *, realtime: bool = False) -> Any:
    """Lets a stream writer write records at least once; the frame has the columns that jvm/LogSink.scala names, in that
    order."""
    spark.jvm.LogSink.attach(writer._jwrite, dict(client), realtime)
    return writer


def write_nowhere(spark: Spark, writer: Any, *, realtime: bool = False) -> Any:
    """The same into nothing."""
    if not realtime:
        return writer.format("noop")
    spark.jvm.LogSink.nowhere(writer._jwrite)
    return writer


def commit_log(
    writer: Any,
    client: Mapping[str, str],
    *,
    id: str,
    commits: str,
    weaker: Mapping[str, str] | None = None,
    stores: Sequence[str] = (),
    staged: str = "",
    plans: Path,
    planned: int,
    known: frozenset[str] | None = None,
) -> Any:
    """The same exactly once, in micro-batches on a local master: a batch is one transaction.

    `id` names the flow to the broker; `commits` is the topic that keeps its last batch; `weaker` are the topics that
    ask for another guarantee. `stores` are the labels of stores that get rows too, by way of the folder `staged`; the
    frame has the columns that jvm/CommitSink.scala names. `plans` is the folder of the checkpoint's plans, `planned`
    its newest; `known` are the runs that the flow may be taken from.
    """
    spec = {
        "id": id,
        "commits": commits,
        "weaker": dict(weaker or {}),
        "stores": list(stores),
        "staged": staged,
        "plans": str(plans),
        "planned": planned,
    } | ({} if known is None else {"known": sorted(known)})
    writer = writer.format(SINK).option("spec", json.dumps(spec))
    for name, value in client.items():
        writer = writer.option(f"kafka.{name}", value)
    return writer
