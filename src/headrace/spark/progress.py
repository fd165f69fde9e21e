"""How far a flow came, as snapshots say it: from what Spark tells of a batch, and from the log itself."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from headrace.base.errors import HeadraceError
from headrace.log import offsets
from headrace.log.broker import Broker
from headrace.observe.growth import Size
from headrace.observe.snapshot import PartitionSnapshot, StepState

Partitions = tuple[PartitionSnapshot, ...]


def size(kept: tuple[StepState, ...]) -> Size:
    return Size(
        at=datetime.now(UTC),
        keys=sum(step.keys for step in kept),
        rows=sum(step.rows for step in kept),
        bytes=sum(step.bytes for step in kept),
    )


def partitions(source: dict[str, Any]) -> Partitions:
    """As the log source tells them with a batch (jvm/LogStream.scala)."""
    metrics = source.get("metrics", {})
    offset = source.get("endOffset") or {}
    parts = (json.loads(offset) if isinstance(offset, str) else offset).get("parts", {})
    return tuple(
        PartitionSnapshot(
            topic=topic,
            partition=int(partition),
            offset=part["to"],
            behind=int(metrics.get(f"{topic}/{partition}.behind", 0)),
            frontier=moment(metrics.get(f"{topic}/{partition}.frontier")),
            idle=metrics.get(f"{topic}/{partition}.idle") == "true",
        )
        for topic, partitions in parts.items()
        for partition, part in partitions.items()
    )


def measured(broker: Broker, known: Partitions) -> Partitions:
    """The same with what has come since, if the broker answers: while no batch ends, nobody else says it."""
    try:
        ends = offsets.ends(broker, [(one.topic, one.partition) for one in known])
    except HeadraceError:
        return known
    return tuple(replace(one, behind=max(0, ends[one.topic, one.partition] - one.offset)) for one in known)


def moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
