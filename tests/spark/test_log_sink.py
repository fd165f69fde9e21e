"""The log sink: records as rows say, every one acknowledged, errors that fail the query."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Producer

from headrace.base.errors import RecordTooLarge
from headrace.base.settings import Settings
from headrace.log.broker import Broker
from headrace.spark.log import read_log, write_log
from headrace.spark.session import Spark
from headrace.spark.trouble import translated
from tests.spark.feeding import create, event, noon_ms, records, send, spec

HEADERS = "array(struct('hr-id' as key, cast(e0.id as binary) as value)) as headers"


def copied(spark: Spark, broker: Broker, source: str, columns: list[str], checkpoint: str) -> None:
    """Runs a query over what is in a topic, its rows written as records."""
    client = {"bootstrap.servers": broker.bootstrap}
    frame = read_log(spark, spec(source), client).selectExpr(*columns)
    writer = frame.writeStream.option("checkpointLocation", checkpoint).trigger(availableNow=True)
    write_log(spark, writer, client).start().awaitTermination()


def test_f1_f3_keys_headers_times_and_partitions(spark: Spark, broker: Broker, topic: str, checkpoint: str) -> None:
    out, usual = f"{topic}-out", f"{topic}-usual"
    create(broker, topic)
    create(broker, out, 4)
    create(broker, usual, 4)
    send(broker, topic, [(0, event(f"{n}", n, card=f"card {n}")) for n in range(50)])
    columns = [f"'{out}' as topic", "cast(e0.card as binary) as key", "value", "time", HEADERS]
    copied(spark, broker, topic, columns, checkpoint)
    found = records(broker, out, at_least=50)
    assert len(found) == 50
    by_id = {json.loads(r.value())["id"]: r for r in found}
    for n in range(50):
        record = by_id[f"{n}"]
        assert record.key() == f"card {n}".encode()
        assert record.headers() == [("hr-id", f"{n}".encode())]
        assert record.timestamp()[1] == noon_ms(n)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "partitioner": "murmur2_random"})
    for n in range(50):
        producer.produce(usual, key=f"card {n}", value=b"")
    producer.flush(10)
    python = {r.key(): r.partition() for r in records(broker, usual, at_least=50)}
    assert {r.key(): r.partition() for r in found} == python


def test_a_partition_can_be_said_and_topic_goes_by_row(
    spark: Spark, broker: Broker, topic: str, checkpoint: str
) -> None:
    create(broker, topic)
    for name in ("a", "b"):
        create(broker, f"{topic}-{name}", 3)
    send(broker, topic, [(0, event("1", 1, card="a")), (0, event("2", 2, card="b")), (0, event("3", 3, card="a"))])
    null = "cast(null as array<struct<key:string,value:binary>>) as headers"
    columns = [f"concat('{topic}-', e0.card) as topic", "cast(null as binary) as key", "value", "cast(null as bigint)"]
    copied(spark, broker, topic, [*columns, null, "2 as partition"], checkpoint)
    first, second = (records(broker, f"{topic}-{name}", at_least=n) for name, n in (("a", 2), ("b", 1)))
    assert [(r.partition(), r.key()) for r in [*first, *second]] == [(2, None)] * 3
    assert [json.loads(r.value())["id"] for r in first] == ["1", "3"]


def test_a_record_that_is_too_large_fails_the_query_by_name(
    spark: Spark, broker: Broker, topic: str, checkpoint: str
) -> None:
    create(broker, topic)
    send(broker, topic, [(0, event("1", 1))])
    columns = [f"'{topic}' as topic", "key", "cast(repeat('x', 3000000) as binary) as value", "time", HEADERS]
    with pytest.raises(RecordTooLarge, match="a record was not written"), translated(spark.log):
        copied(spark, broker, topic, columns, checkpoint)


COPYING = """
import json, sys
from headrace.base.settings import load
from headrace.spark.log import read_log, write_log
from headrace.spark.session import start
home, cache, bootstrap, reading, out, checkpoint = sys.argv[1:]
spark = start(load({"home": home, "cache": cache, "spark.driver_memory": "512m"}, env={}), profile="test")
client = {"bootstrap.servers": bootstrap}
frame = read_log(spark, json.loads(reading), client).selectExpr(
    f"'{out}' as topic", "key", "value", "time", "cast(null as array<struct<key:string,value:binary>>) as headers")
query = write_log(spark, frame.writeStream.option("checkpointLocation", checkpoint), client).start()
print("running", flush=True)
query.awaitTermination()
"""


def test_after_kill_9_nothing_is_missing(
    settings: Settings, broker: Broker, topic: str, checkpoint: str, tmp_path: Path
) -> None:
    out = f"{topic}-out"
    create(broker, topic, 2)
    create(broker, out)
    reading = json.dumps(spec(topic, max_records=200))
    arguments = [str(tmp_path / "home"), str(settings.cache), broker.bootstrap, reading, out, checkpoint]
    sent = 0
    for _ in range(2):
        with subprocess.Popen([sys.executable, "-c", COPYING, *arguments], stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == "running\n"
            send(broker, topic, [(n % 2, event(f"{n}", n)) for n in range(sent, sent + 2000)])
            sent += 2000
            records(broker, out, at_least=sent - 1500)  # in the middle of the batches
            os.kill(child.pid, signal.SIGKILL)
    with subprocess.Popen([sys.executable, "-c", COPYING, *arguments], stdout=subprocess.PIPE, text=True) as child:
        found = records(broker, out, at_least=sent, within=60)
        while len({r.value() for r in found}) < sent:
            found = records(broker, out, at_least=len(found) + 1, within=60)
        child.kill()
    ids = [json.loads(r.value())["id"] for r in found]
    assert set(ids) == {f"{n}" for n in range(sent)}
