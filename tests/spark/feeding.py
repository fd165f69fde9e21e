"""Topics, records and queries for the tests of the log source and sink."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from headrace.log.broker import Broker
from headrace.spark.log import read_log
from headrace.spark.session import Spark

NOON = datetime(2026, 11, 3, 12, tzinfo=UTC)
NONE = -(2**63)
END = 253_402_300_799_999
FIELDS = [{"name": "id", "type": "text"}, {"name": "card", "type": "text"}, {"name": "at", "type": "time"}]


def create(broker: Broker, topic: str, partitions: int = 1) -> None:
    """Kept for ever, as Headrace makes topics: the records are older than a broker's own retention (rule F3)."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(topic, partitions, 1, config={"retention.ms": "-1"})])[topic].result()
    until(lambda: len(admin.list_topics(topic, 5).topics[topic].partitions) == partitions)


def noon(seconds: float) -> str:
    """That many seconds past noon, on the wire."""
    return datetime.fromtimestamp(NOON.timestamp() + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def noon_ms(seconds: float) -> int:
    return round((NOON.timestamp() + seconds) * 1000)


def event(id: str, at: float | str, card: str = "c1") -> bytes:
    return json.dumps({"id": id, "card": card, "at": at if isinstance(at, str) else noon(at)}).encode()


Given = tuple[int, bytes | None] | tuple[int, bytes | None, list[tuple[str, bytes]]]


def send(broker: Broker, topic: str, records: Iterable[Given], *, key: bytes = b"k", time_ms: int = 0) -> None:
    """Records as (partition, value) or (partition, value, headers), acknowledged when this returns."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0})
    for record in records:
        headers = record[2] if len(record) == 3 else []
        producer.produce(topic, value=record[1], key=key, partition=record[0], headers=headers, timestamp=time_ms)
    assert producer.flush(20) == 0


def spec(*topics: str | dict[str, Any], **more: Any) -> dict[str, Any]:
    """A spec of the source; a topic given by name has the fields id, card, at and is never idle."""
    usual = {"fields": FIELDS, "key": "card", "id": "id", "time": "at", "disorder_ms": 0, "skew_ms": 60_000}
    named = [{"topic": t} if isinstance(t, str) else t for t in topics]
    return {"start": "earliest", "topics": [usual | t for t in named], **more}


@contextmanager
def query(
    spark: Spark, broker: Broker, reading: dict[str, Any], checkpoint: str, *, now: bool = False
) -> Iterator[Query]:
    """A running query into files, stopped at the end; `now`: over what is there, then it has ended by itself."""
    rows = f"{checkpoint}-rows"
    frame = read_log(spark, reading, {"bootstrap.servers": broker.bootstrap})
    writer = frame.writeStream.format("parquet").option("path", rows).option("checkpointLocation", checkpoint)
    started = (writer.trigger(availableNow=True) if now else writer).start()
    try:
        if now:
            started.awaitTermination()
        yield Query(frame, started, rows)
    finally:
        started.stop()


class Query:
    """What a test asks of a query."""

    def __init__(self, frame: Any, running: Any, path: str) -> None:
        self._frame, self.running, self._path = frame, running, path

    def settle(self) -> Query:
        """Waits until it has read everything and the watermark stands."""
        self.running.processAllAvailable()
        return self

    def rows(self, *columns: str) -> list[tuple[Any, ...]]:
        if not (Path(self._path) / "_spark_metadata").exists():
            return []
        found = self._frame.sparkSession.read.schema(self._frame.schema).parquet(self._path)
        found = found.orderBy("topic", "partition", "offset").selectExpr(*columns)
        return [tuple(row) for row in found.collect()]

    def batches(self) -> list[dict[str, Any]]:
        """Per batch: its id, Spark's watermark in it (ms), and the source's offset at its end."""
        found = {}
        for progress in self.running.recentProgress:
            read = progress["sources"][0]
            if read["endOffset"] and read["endOffset"] != read["startOffset"]:
                end = read["endOffset"]
                found[progress["batchId"]] = {
                    "id": progress["batchId"],
                    "rows": progress["numInputRows"],
                    "watermark": _ms(progress["eventTime"]["watermark"]),
                    "offset": json.loads(end) if isinstance(end, str) else end,
                    "metrics": read.get("metrics", {}),
                }
        return [found[id] for id in sorted(found)]

    def watermark(self) -> int:
        return int(self.batches()[-1]["watermark"]) if self.batches() else 0


def _ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def records(broker: Broker, topic: str, *, at_least: int, within: float = 30) -> list[Any]:
    """Everything in a topic, once that many records are there."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": topic,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    try:
        partitions = consumer.list_topics(topic, 5).topics[topic].partitions
        consumer.assign([TopicPartition(topic, p, 0) for p in partitions])
        found: list[Any] = []
        deadline = time.monotonic() + within
        while len(found) < at_least:
            assert time.monotonic() < deadline, f"{len(found)} of {at_least} records came"
            found += consumer.consume(1000, 0.1)
        return found + consumer.consume(100_000, 0.3)
    finally:
        consumer.close()


def until(condition: Callable[[], Any], *, within: float = 20.0) -> Any:
    deadline = time.monotonic() + within
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.02)
    return found
