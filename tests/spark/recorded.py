"""What a Spark run read and wrote: its schedule from the checkpoint (rule R3), its records from the log."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from headrace.base.clock import micros, rfc3339
from headrace.expr.types import BYTES, TIME, Columns, DecimalType
from headrace.log.broker import Broker
from headrace.log.codec import Codec
from headrace.log.read import read
from headrace.model.event import EventType
from headrace.plan.plan import Exit, Flow
from headrace.reference.batch import Arrival, Batch, Record, Tombstone

Written = tuple[str, str | None, str, int, str]
"""Topic, key, stable id, record time in ms, value as JSON, empty for a tombstone."""


def schedule(checkpoint: Path, flow: Flow, broker: Broker) -> Iterator[tuple[Batch, bool]]:
    """The batches that Spark planned, and whether each was committed: rows [from, to) of every partition, the watermark
    after them, the batch's clock."""
    log = {
        (source.node.event.topic, arrival.partition, arrival.offset): arrival  # type: ignore[union-attr]
        for number, source in enumerate(flow.by_topic)
        for arrival in _arrivals(broker, source.node.event, number)  # type: ignore[union-attr]
    }
    for file in sorted((checkpoint / "offsets").iterdir(), key=lambda f: int(f.name) if f.name.isdigit() else -1):
        if not file.name.isdigit():
            continue
        _, metadata, offset = file.read_text().splitlines()[:3]
        end = json.loads(offset)
        rows = [
            log[topic, int(partition), at]
            for topic, parts in end["parts"].items()
            for partition, part in parts.items()
            for at in range(part["from"], part["to"])
        ]
        batch = Batch(rows, end.get("watermark"), json.loads(metadata)["batchTimestampMs"])
        yield batch, (checkpoint / "commits" / file.name).exists()


def _arrivals(broker: Broker, event: EventType, number: int) -> Iterator[Arrival]:
    codec = Codec(event.cls)
    for message in read(broker, event.topic):
        place = (number, message.partition(), message.offset())
        if message.value() is None:
            key = message.key().decode()
            gone = Tombstone(tuple(json.loads(key)) if len(event.key) > 1 else (key,))
            yield Arrival(message.timestamp()[1] * 1_000, *place, gone)
        else:
            row = codec.decode(message.value())
            values = tuple(getattr(row, column.name) for column in event.columns)
            yield Arrival(micros(getattr(row, event.time)), *place, values)


def written(broker: Broker, *topics: str) -> list[Written]:
    """Everything in these topics, sorted."""
    found = []
    for topic in topics:
        for message in read(broker, topic):
            headers = dict(message.headers() or ())
            key = None if message.key() is None else message.key().decode()
            value = (message.value() or b"").decode()
            found.append((topic, key, headers["hr-id"].decode(), message.timestamp()[1], value))
    return sorted(found)


def expected(records: list[Record], flow: Flow) -> list[Written]:
    """The reference's records as they would stand in the log, sorted."""
    exits = {leaving.target.label: leaving for leaving in flow.exits}
    return sorted((r.topic, r.key, r.id, max(0, r.time // 1000), _value(r.values, exits[r.topic])) for r in records)


def _value(values: Any, leaving: Exit) -> str:
    if isinstance(values, Tombstone):
        return ""
    if leaving.form != "changes":
        return _text(_row(values, leaving.columns))
    op, key, before, after, version = values
    rows = [None if row is None else _row(tuple(row.values()), leaving.columns) for row in (before, after)]
    return _text({"op": op, "key": key, "before": rows[0], "after": rows[1], "version": rfc3339(version)})


def _row(values: tuple[Any, ...], columns: Columns) -> dict[str, Any]:
    return {c.name: _wire(value, c.type) for c, value in zip(columns, values, strict=True)}


def _text(row: dict[str, Any]) -> str:
    return json.dumps(row, separators=(",", ":"), ensure_ascii=False)


def _wire(value: Any, type: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, list | tuple):
        return [_wire(one, type.item) for one in value]
    if isinstance(type, DecimalType):
        return f"{value:f}"
    if type == BYTES:
        return b64encode(value).decode()
    return rfc3339(value) if type == TIME else value
