"""The log source, on a real broker: typed rows, dead letters, and the rules of time."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from decimal import Decimal
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions
from pyspark.errors import PySparkException

from headrace.base.errors import BrokerUnreachable, RecordsLost, TopicMissing, TopicRecreated
from headrace.log.broker import Broker
from headrace.spark.log import read_log, write_log
from headrace.spark.session import Spark
from headrace.spark.trouble import translated
from tests.spark.feeding import END, NONE, create, event, noon, noon_ms, query, records, send, spec, until

EVERYTHING = [
    {"name": "b", "type": "bool"},
    {"name": "i", "type": "int"},
    {"name": "f", "type": "float"},
    {"name": "t", "type": "text"},
    {"name": "at", "type": "time"},
    {"name": "y", "type": "bytes"},
    {"name": "m", "type": "money"},
    {"name": "d", "type": "decimal(30, 4)", "nullable": True},
    {"name": "l", "type": "list of text"},
]


def test_f1_every_type_comes_as_it_was_sent(spark: Spark, broker: Broker, topic: str, checkpoint: str) -> None:
    create(broker, topic, 2)
    value = {
        "b": True, "i": -(2**63), "f": 1.5, "t": "h\u00e9 \"q\" \U0001f600", "at": "2026-11-03T14:00:00.5+02:00",
        "y": "aGk=", "m": "-12.34", "d": None, "l": ["a", "b"], "unknown": {"x": [1, {"y": None}]},
    }  # fmt: skip
    send(broker, topic, [(1, json.dumps(value).encode())])
    reading = spec({"topic": topic, "fields": EVERYTHING, "key": None, "id": None})
    with query(spark, broker, reading, checkpoint, now=True) as q:
        ((part, offset, micros, dead, headers, row),) = q.rows("partition", "offset", "time", "dead", "headers", "e0")
    at = datetime(2026, 11, 3, 12, 0, 0, 500_000, UTC)
    assert (part, offset, dead, headers) == (1, 0, None, None)
    assert micros == round(at.timestamp() * 1_000_000)
    assert row.asDict() | {"y": bytes(row.y)} == {
        "b": True, "i": -(2**63), "f": 1.5, "t": "h\u00e9 \"q\" \U0001f600", "at": at.replace(tzinfo=None), "y": b"hi",
        "m": Decimal("-12.34"), "d": None, "l": ["a", "b"],
    }  # fmt: skip


def test_b1_bad_records_come_out_with_their_reason_and_their_bytes(
    spark: Spark, broker: Broker, topic: str, checkpoint: str
) -> None:
    create(broker, topic)
    fields = [*spec("x")["topics"][0]["fields"], {"name": "score", "type": "float", "nullable": True}]
    bad = [
        (b"not json", "undecodable"),
        (b"[1]", "undecodable: the value is no JSON object"),
        (None, "undecodable: the record has no value"),
        (b'{"id":"a","card":"c","at":"2026-11-03T12:00:00Z"} x', "undecodable"),
        (event("a", 1).replace(b'"card": "c1"', b'"card": null'), "missing-key: field card is missing"),
        (event("a", 1).replace(b'"id": "a", ', b""), "missing-id: field id is missing"),
        (event("a", 1).replace(b'"at"', b'"when"'), "missing-time: field at is missing"),
        (event("a", "yesterday"), "schema: field at is not time"),
        (event("a", "2026-11-03T12:00:00"), "schema: field at is not time"),
        (event("a", 1)[:-1] + b', "score": "high"}', "schema: field score is not float"),
        (event("a", 1)[:-1] + b', "score": NaN}', "nan: field score is not a finite number"),
        (event("a", "2999-01-01T00:00:00Z"), "future"),
    ]
    send(broker, topic, [(0, value, [("h", b"1")]) for value, _ in bad])
    send(broker, topic, [(0, event("good", 1))])
    reading = spec({"topic": topic, "fields": fields})
    with query(spark, broker, reading, checkpoint, now=True) as q:
        found = q.rows("dead", "value", "time", "headers", "e0", "key")
    assert len(found) == len(bad) + 1
    for (value, reason), (dead, raw, micros, headers, row, key) in zip(bad, found, strict=False):
        assert dead.startswith(reason), (value, dead)
        assert (micros, row) == (None, None)
        assert (raw if raw is None else bytes(raw), bytes(key)) == (value, b"k")
        assert [(h.key, bytes(h.value)) for h in headers] == [("h", b"1")]
    assert found[-1][0] is None


def test_t2_an_event_from_the_future_never_moves_the_watermark(
    spark: Spark, broker: Broker, topic: str, checkpoint: str
) -> None:
    create(broker, topic)
    send(broker, topic, [(0, event("a", 5)), (0, event("b", "2999-01-01T00:00:00Z")), (0, event("c", 6))])
    with query(spark, broker, spec(topic), checkpoint) as q:
        assert q.settle().watermark() == noon_ms(6)


def test_t3_the_watermark_is_the_minimum_over_partitions_less_disorder(
    spark: Spark, broker: Broker, topic: str, checkpoint: str
) -> None:
    create(broker, topic, 2)
    send(broker, topic, [(0, event("a", 100)), (1, event("b", 40.0009)), (0, event("c", 90))])
    with query(spark, broker, spec({"topic": topic, "disorder_ms": 30_000}), checkpoint) as q:
        assert q.settle().watermark() == noon_ms(10)
        send(broker, topic, [(1, event("d", 95))])
        assert q.settle().watermark() == noon_ms(65)


def test_t3_an_empty_partition_holds_the_watermark_unless_it_may_be_idle(
    spark: Spark, broker: Broker, topic: str, checkpoint: str
) -> None:
    create(broker, topic, 2)
    send(broker, topic, [(0, event("a", 100))])
    with query(spark, broker, spec(topic), checkpoint + "/never") as q:
        assert q.settle().watermark() == 0
    with query(spark, broker, spec({"topic": topic, "idle_ms": 300}), checkpoint + "/idle") as q:
        until(lambda: q.watermark() >= noon_ms(100))


def test_t3_when_all_is_idle_time_runs_on_with_the_clock(
    spark: Spark, broker: Broker, topic: str, checkpoint: str
) -> None:
    create(broker, topic, 2)
    send(broker, topic, [(0, event("a", 10)), (1, event("b", 20))])
    reading = spec({"topic": topic, "idle_ms": 400, "disorder_ms": 5_000})
    began = time.time()
    with query(spark, broker, reading, checkpoint) as q:
        q.settle()
        assert q.watermark() == noon_ms(5)
        until(lambda: q.watermark() >= noon_ms(17))
    passed = (time.time() - began) * 1000
    assert q.watermark() <= noon_ms(15) + passed


def test_t4_several_topics_one_watermark_each_with_its_own_disorder(
    spark: Spark, broker: Broker, topic: str, checkpoint: str
) -> None:
    left, right = f"{topic}-l", f"{topic}-r"
    create(broker, left)
    create(broker, right)
    send(broker, left, [(0, event("a", 100))])
    send(broker, right, [(0, json.dumps({"n": 7, "when": noon(70)}).encode())])
    fields = [{"name": "n", "type": "int"}, {"name": "when", "type": "time"}]
    other = {"topic": right, "fields": fields, "key": None, "id": None, "time": "when", "disorder_ms": 1_000}
    with query(spark, broker, spec(left, other), checkpoint) as q:
        assert q.settle().watermark() == noon_ms(69)
        assert q.rows("topic", "e0.id", "e1.n") == [(0, "a", None), (1, None, 7)]
        send(broker, right, [(0, json.dumps({"n": 8, "when": noon(200)}).encode())])
        assert q.settle().watermark() == noon_ms(100)


def test_t7_a_marked_stream_follows_marks_only_and_marks_are_no_rows(
    spark: Spark, broker: Broker, topic: str, checkpoint: str
) -> None:
    create(broker, topic)
    mark = str(noon_ms(50) * 1000).encode()
    send(broker, topic, [(0, event("a", 100)), (0, None, [("hr-mark", mark)]), (0, event("b", 60))])
    with query(spark, broker, spec({"topic": topic, "marked": True, "disorder_ms": 7_000}), checkpoint) as q:
        assert q.settle().watermark() == noon_ms(50)
        assert q.rows("e0.id", "dead") == [("a", None), ("b", None)]


def test_r1_r3_offsets_record_the_schedule_and_rows_know_the_watermark_before(
    spark: Spark, broker: Broker, topic: str, checkpoint: str
) -> None:
    create(broker, topic, 2)
    for n in range(4):
        send(broker, topic, [(p, event(f"{n}/{p}", 10 * n + p)) for p in (0, 1)])
    reading = spec({"topic": topic, "disorder_ms": 1_000}, max_records=2)
    with query(spark, broker, reading, checkpoint) as q:  # batches with rows, one after the other
        q.settle()
        batches = q.batches()
        rows = q.rows("partition", "offset", "before")
    marks = [b["offset"].get("watermark", NONE) for b in batches]
    assert [b["watermark"] for b in batches] == [max(0, mark) for mark in marks]
    assert marks == sorted(marks)
    assert marks[-1] == noon_ms(29)
    before = {}
    for number, batch in enumerate(batches):
        for partition, part in batch["offset"]["parts"][topic].items():
            for offset in range(part["from"], part["to"]):
                before[int(partition), offset] = marks[number - 1] if number else NONE
    assert {(p, o): w for p, o, w in rows} == before
    assert len(set(before.values())) == 3  # none twice: nothing was known before the second batch either


def test_t3_in_history_everything_closes_at_the_end_of_input(
    spark: Spark, broker: Broker, topic: str, checkpoint: str
) -> None:
    create(broker, topic, 3)  # one partition stays empty: a bounded run does not wait for it
    send(broker, topic, [(n % 2, event(f"{n}", n)) for n in range(100)])
    reading = spec(topic, end_of_input=True, max_records=10)
    with query(spark, broker, reading, checkpoint, now=True) as q:
        batches = q.batches()
        assert len(q.rows("offset")) == 100
    read = accumulate(b["rows"] for b in batches)
    assert [int(b["metrics"]["behind"]) for b in batches] == [100 - so_far for so_far in read]  # what is left after it
    assert batches[-1]["watermark"] == END  # a batch has run in which every timer was due
    assert batches[-1]["rows"] == 0
    assert all(b["rows"] <= 12 for b in batches)
    assert sum(b["watermark"] == END for b in batches) == 1


def test_r6_without_end_of_input_history_goes_on_live(
    spark: Spark, broker: Broker, topic: str, checkpoint: str
) -> None:
    create(broker, topic)
    send(broker, topic, [(0, event("a", 10))])
    with query(spark, broker, spec(topic), checkpoint, now=True) as q:
        assert q.watermark() == noon_ms(10)
    send(broker, topic, [(0, event("b", 20))])
    with query(spark, broker, spec(topic), checkpoint) as q:
        assert q.settle().watermark() == noon_ms(20)
        assert q.rows("e0.id", "before") == [("a", NONE), ("b", noon_ms(10))]


def test_t4_over_a_restart_nothing_is_lost_or_doubled_and_time_never_goes_back(
    spark: Spark, broker: Broker, topic: str, checkpoint: str
) -> None:
    create(broker, topic, 2)
    for run in range(3):
        send(broker, topic, [(p, event(f"{run}/{p}", 100 - 10 * run + p)) for p in (0, 1)])
        with query(spark, broker, spec(topic), checkpoint) as q:
            assert q.settle().watermark() == noon_ms(100)
            found = q.rows("e0.id", "before")
    after = [("0", NONE), ("1", noon_ms(100)), ("2", noon_ms(100))]
    assert found == [(f"{run}/{p}", before) for p in (0, 1) for run, before in after]


def test_t4_what_a_batch_taught_outlives_a_crash_right_after_its_commit(
    spark: Spark, broker: Broker, topic: str, checkpoint: str
) -> None:
    create(broker, topic, 2)
    send(broker, topic, [(0, event("a", 100)), (1, event("b", 40))])

    def only_the_first(frame: Any, batch: int) -> None:
        frame.count()
        if batch > 0:
            raise RuntimeError("the second batch does not run")

    frame = read_log(spark, spec(topic), {"bootstrap.servers": broker.bootstrap})
    writer = frame.writeStream.foreachBatch(only_the_first).option("checkpointLocation", checkpoint)
    with pytest.raises(PySparkException, match="the second batch does not run"):
        writer.start().awaitTermination()
    (Path(checkpoint) / "offsets" / "1").unlink()  # never planned: only the file knows
    send(broker, topic, [(1, event("c", 50))])
    with query(spark, broker, spec(topic), checkpoint) as q:
        assert q.settle().watermark() == noon_ms(50)
        assert q.batches()[0]["watermark"] == noon_ms(40)


def test_until_and_from_bound_a_run_by_record_time(spark: Spark, broker: Broker, topic: str, checkpoint: str) -> None:
    create(broker, topic)
    for n in range(10):
        send(broker, topic, [(0, event(f"{n}", n))], time_ms=noon_ms(n))
    reading = spec(topic, start=noon_ms(3), until=noon_ms(7))
    with query(spark, broker, reading, checkpoint + "/time", now=True) as q:
        assert [id for (id,) in q.rows("e0.id")] == ["3", "4", "5", "6"]
    with query(spark, broker, spec(topic, start={topic: {"0": 8}}), checkpoint + "/offset", now=True) as q:
        assert [id for (id,) in q.rows("e0.id")] == ["8", "9"]


def test_an_aligned_replay_reads_all_partitions_up_to_one_time(
    spark: Spark, broker: Broker, topic: str, checkpoint: str
) -> None:
    create(broker, topic, 2)
    for p, step in ((0, 1), (1, 10)):  # one partition holds ten times the records of the other
        for n in range(0, 200, step):
            send_at = noon_ms(n)
            send(broker, topic, [(p, event(f"{p}/{n}", n))], time_ms=send_at)
    with query(spark, broker, spec(topic, aligned=True, max_records=50), checkpoint, now=True) as q:
        parts = [b["offset"]["parts"][topic] for b in q.batches() if b["rows"]]
    assert len(parts) > 3
    for part in parts[:-1]:
        assert abs(part["0"]["to"] - 10 * part["1"]["to"]) <= 10


def test_new_partitions_are_noticed(spark: Spark, broker: Broker, topic: str, checkpoint: str) -> None:
    create(broker, topic)
    send(broker, topic, [(0, event("a", 1))])
    with query(spark, broker, spec(topic), checkpoint) as q:
        q.settle()
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.create_partitions([NewPartitions(topic, 2)])[topic].result()
        until(lambda: len(admin.list_topics(topic, 5).topics[topic].partitions) == 2)
        send(broker, topic, [(1, event("b", 2))])
        until(lambda: q.rows("e0.id") == [("a",), ("b",)])


def test_a_missing_topic_is_named(spark: Spark, broker: Broker, topic: str, checkpoint: str) -> None:
    with (
        pytest.raises(TopicMissing, match=f"topic '{topic}' does not exist"),
        translated(spark.log),
        query(spark, broker, spec(topic), checkpoint, now=True),
    ):
        pass


def test_a_broker_that_does_not_answer_is_named(spark: Spark, topic: str, checkpoint: str) -> None:
    client = {"bootstrap.servers": "127.0.0.1:1", "default.api.timeout.ms": "1000", "request.timeout.ms": "500"}
    writer = read_log(spark, spec(topic), client).writeStream.format("noop").option("checkpointLocation", checkpoint)
    with pytest.raises(BrokerUnreachable, match=r"127\.0\.0\.1:1"), translated(spark.log):
        writer.start().awaitTermination()


def test_a_topic_made_anew_is_refused(spark: Spark, broker: Broker, topic: str, checkpoint: str) -> None:
    create(broker, topic)
    send(broker, topic, [(0, event("a", 1))])
    with query(spark, broker, spec(topic), checkpoint, now=True):
        pass
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.delete_topics([topic])[topic].result()
    until(lambda: topic not in admin.list_topics(timeout=5).topics)
    create(broker, topic)
    send(broker, topic, [(0, event("b", 1)), (0, event("c", 1))])
    with (
        pytest.raises(TopicRecreated, match="deleted and made anew"),
        translated(spark.log),
        query(spark, broker, spec(topic), checkpoint, now=True),
    ):
        pass


def test_records_that_retention_took_are_missed_loudly(
    spark: Spark, broker: Broker, topic: str, checkpoint: str
) -> None:
    create(broker, topic)
    send(broker, topic, [(0, event("a", 1))])
    with query(spark, broker, spec(topic), checkpoint, now=True):
        pass
    send(broker, topic, [(0, event(f"{n}", n)) for n in range(5)])
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for answer in admin.delete_records([TopicPartition(topic, 0, 4)]).values():
        answer.result()
    with (
        pytest.raises(RecordsLost, match="wanted offset 1, but there are only"),
        translated(spark.log),
        query(spark, broker, spec(topic), checkpoint, now=True),
    ):
        pass


def test_metrics_name_the_slowest_partition(spark: Spark, broker: Broker, topic: str, checkpoint: str) -> None:
    create(broker, topic, 2)
    send(broker, topic, [(0, event("a", 100)), (1, event("b", 40))])
    with query(spark, broker, spec(topic), checkpoint) as q:
        metrics = q.settle().batches()[-1]["metrics"]
    assert metrics["slowest"] == f"{topic}/1"
    assert metrics["watermark"] == noon(40)
    assert metrics[f"{topic}/0.frontier"] == noon(100)
    assert metrics["behind"] == "0"


def test_real_time_mode_reads_and_writes_in_milliseconds(
    spark: Spark, broker: Broker, topic: str, checkpoint: str
) -> None:
    out = f"{topic}-out"
    create(broker, topic, 2)
    create(broker, out)
    client = {"bootstrap.servers": broker.bootstrap}
    frame = read_log(spark, spec(topic), client).selectExpr(
        f"'{out}' as topic", "key", "value", "time", "cast(null as array<struct<key:string,value:binary>>) as headers"
    )
    writer = frame.writeStream.outputMode("update").option("checkpointLocation", checkpoint)
    running = write_log(spark, writer.trigger(realTime="5 seconds"), client, realtime=True).start()
    try:
        send(broker, topic, [(0, event("warm", 1))])
        records(broker, out, at_least=1)
        took = []
        for n in range(20):
            began = time.monotonic()
            send(broker, topic, [(n % 2, event(f"{n}", n))])
            records(broker, out, at_least=n + 2)
            took.append(time.monotonic() - began)
        until(lambda: running.recentProgress and running.recentProgress[-1]["batchId"] >= 1, within=30)
        send(broker, topic, [(p, event("last", 50)) for p in (0, 1)])
        found = records(broker, out, at_least=23)
        assert len(found) == 23
        until(lambda: running.recentProgress[-1]["eventTime"].get("watermark", "").startswith("2026"), within=30)
    finally:
        running.stop()
    assert sorted(took)[10] < 2  # a consumer is opened each time: the meter, not the engine, takes most of it
