"""Tables in the log source, on a real broker: loaded first, tombstones, changes, and which of them hold time."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from pyspark.errors import PySparkException

from headrace.log.broker import Broker
from headrace.spark.log import read_log, write_log
from headrace.spark.session import Spark
from tests.spark.feeding import END, create, event, noon, noon_ms, query, records, send, spec, until

FIELDS = [{"name": "name", "type": "text"}, {"name": "city", "type": "text"}]


def table(topic: str, **more: Any) -> dict[str, Any]:
    """A table of names with their city, dated by its records; beside a stream it does not count."""
    named = {"topic": topic, "table": True, "counts": False, "fields": FIELDS, "key": "name", "id": None, "time": None}
    return named | more


def version(broker: Broker, topic: str, name: str, city: str | None, at: float, partition: int = 0) -> None:
    value = None if city is None else json.dumps({"name": name, "city": city}).encode()
    send(broker, topic, [(partition, value)], key=name.encode(), time_ms=noon_ms(at))


def read(batches: list[dict[str, Any]], *topics: str) -> list[tuple[int, ...]]:
    """How many records of each topic every batch read; batches without any are left out."""
    found = [
        tuple(sum(part["to"] - part["from"] for part in batch["offset"]["parts"][t].values()) for t in topics)
        for batch in batches
    ]
    return [counts for counts in found if any(counts)]


def test_j4_tables_are_loaded_to_the_end_seen_at_start_before_any_stream_record(
    spark: Spark, broker: Broker, topic: str, checkpoint: str
) -> None:
    stream, cities = f"{topic}-s", f"{topic}-t"
    create(broker, stream)
    create(broker, cities, 2)
    send(broker, stream, [(0, event(f"{n}", n)) for n in range(3)])
    for n in range(5):
        version(broker, cities, f"n{n}", "Rome", 1000 + n, partition=n % 2)

    with query(spark, broker, spec(stream, table(cities), max_records=2), checkpoint) as q:
        q.settle()
        batches = read(q.batches(), stream, cities)
        # when the table goes on changing beside the stream
        version(broker, cities, "n0", "Oslo", 2000)
        version(broker, cities, "n1", None, 2001)
        send(broker, stream, [(0, event("new", 50))])
        q.settle()
        rows = q.rows("topic", "e0.id", "e1.city", "decode(key, 'utf-8')")

    assert batches == [(0, 3), (0, 2), (2, 0), (1, 0)]
    assert q.watermark() == noon_ms(50)  # far behind the table's times
    assert [id for number, id, *_ in rows if number == 0] == ["0", "1", "2", "new"]
    versions = [("Rome", f"n{n}") for n in (0, 2, 4)] + [("Oslo", "n0"), (None, "n1"), ("Rome", "n1"), ("Rome", "n3")]
    assert [found for number, _, *found in map(list, rows) if number == 1] == list(map(list, versions))


def test_j4_a_restart_in_the_middle_of_loading_goes_on_loading(
    spark: Spark, broker: Broker, topic: str, checkpoint: str
) -> None:
    stream, cities = f"{topic}-s", f"{topic}-t"
    create(broker, stream)
    create(broker, cities)
    send(broker, stream, [(0, event("a", 1))])
    for n in range(4):
        version(broker, cities, f"n{n}", "Rome", n)
    reading = spec(stream, table(cities), max_records=1)

    def only_two(frame: Any, batch: int) -> None:
        frame.count()
        if batch == 2:
            raise RuntimeError("the third batch does not run")

    frame = read_log(spark, reading, {"bootstrap.servers": broker.bootstrap})
    writer = frame.writeStream.foreachBatch(only_two).option("checkpointLocation", checkpoint)
    with pytest.raises(PySparkException, match="the third batch does not run"):
        writer.start().awaitTermination()
    version(broker, cities, "late", "Oslo", 9)  # after the end seen at the first start: it waits for nothing

    with query(spark, broker, reading | {"max_records": 2}, checkpoint) as q:
        q.settle()
        batches = q.batches()

    assert read(batches, stream, cities) == [(0, 1), (0, 1), (1, 1)]
    assert [b["offset"]["parts"][cities]["0"].get("load") for b in batches[:3]] == [4, None, None]
    assert batches[1]["offset"].get("watermark") is None  # time stood still


def test_j4_in_history_tables_that_do_not_count_come_first_and_others_take_their_place_in_time(
    spark: Spark, broker: Broker, topic: str, checkpoint: str
) -> None:
    stream, cities = f"{topic}-s", f"{topic}-t"
    create(broker, stream)
    create(broker, cities)
    for n in range(6):
        send(broker, stream, [(0, event(f"{n}", n))], time_ms=noon_ms(n))
        version(broker, cities, f"n{n}", "Rome", n)

    def replayed(*, counts: bool, **more: Any) -> list[tuple[int, ...]]:
        reading = spec(stream, table(cities, counts=counts), max_records=4, aligned=True, end_of_input=True, **more)
        with query(spark, broker, reading, f"{checkpoint}-{counts}", now=True) as q:
            assert q.watermark() == END
            return read(q.batches(), stream, cities)

    first = replayed(counts=False, start=noon_ms(3))  # where the streams start: a table begins at its beginning
    assert first == [(0, 4), (0, 2), (3, 0)]
    aligned = replayed(counts=True)
    assert len(aligned) >= 3
    assert all(streamed == versions for streamed, versions in aligned)


def test_t4_a_table_that_does_not_count_is_as_if_it_were_not_there(
    spark: Spark, broker: Broker, topic: str, checkpoint: str
) -> None:
    stream, cities = f"{topic}-s", f"{topic}-t"
    create(broker, stream)
    create(broker, cities)
    version(broker, cities, "n", "Rome", 1000)
    send(broker, stream, [(0, event("a", 10))])
    reading = spec({"topic": stream, "idle_ms": 300}, table(cities))  # never idle: it would hold time for ever

    with query(spark, broker, reading, checkpoint) as q:
        assert q.settle().watermark() == noon_ms(10)
        until(lambda: q.watermark() > noon_ms(10))  # all that counts is idle: time runs on
        assert q.watermark() < noon_ms(900)
        assert q.batches()[-1]["metrics"]["slowest"] == f"{stream}/0"


def test_t4_a_query_of_tables_alone_follows_their_time(
    spark: Spark, broker: Broker, topic: str, checkpoint: str
) -> None:
    people, cities = f"{topic}-p", f"{topic}-t"
    create(broker, people)
    create(broker, cities)
    for n in range(3):
        version(broker, people, f"p{n}", "Rome", 100 + n)
    version(broker, cities, "c", "Rome", 50)
    reading = spec(table(people, counts=True), table(cities, counts=True), max_records=2)

    with query(spark, broker, reading, checkpoint) as q:
        assert q.settle().watermark() == noon_ms(50)
        version(broker, cities, "c", None, 150)  # a tombstone's time moves it too
        assert q.settle().watermark() == noon_ms(102)
        assert [b["offset"].get("watermark") for b in q.batches()[:2]] == [None, None]  # nothing while it loaded


def test_j6_tombstones_and_keys_that_do_not_fit_their_row(
    spark: Spark, broker: Broker, topic: str, checkpoint: str
) -> None:
    create(broker, topic)
    fields = [{"name": "country", "type": "text"}, {"name": "number", "type": "int"}, {"name": "since", "type": "time"}]
    row = json.dumps({"country": "de", "number": 7, "since": noon(5)}).encode()
    for key, value in ((b'["de",7]', row), (b'["de",7]', None), (b"de", row)):
        send(broker, topic, [(0, value)], key=key, time_ms=noon_ms(9))
    send(broker, topic, [(0, None)], key=b"x", time_ms=round(time.time() * 1000) + 600_000)
    reading = spec(table(topic, fields=fields, key=["country", "number"], time="since"))

    with query(spark, broker, reading, checkpoint, now=True) as q:
        found = q.rows("decode(key, 'utf-8')", "e0.number", "e0 is null", "time", "dead")

    assert found[:2] == [
        ('["de",7]', 7, False, noon_ms(5) * 1000, None),
        ('["de",7]', None, True, noon_ms(9) * 1000, None),
    ]
    assert found[2][4] == "schema: the record's key is 'de', but its row's key is '[\"de\",7]'"
    assert found[3][4].startswith("future: ")


def test_j6_a_version_without_a_record_key_is_dead(spark: Spark, broker: Broker, topic: str, checkpoint: str) -> None:
    create(broker, topic)
    send(broker, topic, [(0, b'{"name": "n", "city": "Rome"}')], key=None)
    with query(spark, broker, spec(table(topic)), checkpoint, now=True) as q:
        assert q.rows("dead") == [("missing-key: the record has no key",)]


def test_f2_changes_are_rows_and_tombstones_of_a_table(
    spark: Spark, broker: Broker, topic: str, checkpoint: str
) -> None:
    rome, oslo = {"name": "n", "city": "Rome"}, {"name": "n", "city": "Oslo"}
    at = noon_ms(1)
    changes: list[tuple[bytes | None, Any]] = [
        (b"n", {"op": "insert", "key": "n", "before": None, "after": rome, "version": at * 1000 + 5}),
        (b"n", {"op": "update", "key": "n", "before": rome, "after": oslo, "version": noon(2)}),
        (b"n", {"op": "delete", "key": "n", "before": oslo, "after": None, "version": at * 1000 + 9}),
        (b'{"name": "n"}', {"op": "c", "ts_ms": at + 4, "before": None, "after": rome, "source": {"lsn": 1}}),
        (b'{"name": "n"}', {"op": "d", "before": {"name": "n", "city": None}, "after": None}),
        (b'{"name": "n"}', {"op": "d", "before": None, "after": None, "ts_ms": at + 6}),
        (b'{"name": "n"}', None),
        (None, {"op": "d", "before": None, "after": None}),
        (b"n", {"op": "t", "before": None, "after": None}),
        (b"n", {"op": "u", "before": None, "after": {"name": "n"}}),
        (b"n", {"op": "u", "after": rome, "version": "soon"}),
        (b"n", {"op": "u"}),
        (b"n", rome),
    ]
    create(broker, topic)
    for key, value in changes:
        send(broker, topic, [(0, value and json.dumps(value).encode())], key=key, time_ms=at + 7)

    with query(spark, broker, spec(table(topic, changes=True)), checkpoint, now=True) as q:
        found = q.rows("decode(key, 'utf-8')", "e0.city", "time", "dead")

    assert found[:7] == [
        ("n", "Rome", at * 1000 + 5, None),
        ("n", "Oslo", noon_ms(2) * 1000, None),
        ("n", None, at * 1000 + 9, None),
        ("n", "Rome", (at + 4) * 1000, None),
        ("n", None, (at + 7) * 1000, None),
        ("n", None, (at + 6) * 1000, None),
        ("n", None, (at + 7) * 1000, None),
    ]
    assert [dead for *_, dead in found[7:]] == [
        "missing-key: neither the change nor its record says whose it is",
        "undecodable: the value is no change of a row: its op is 't'",
        "schema: field city is missing",
        "schema: field version is no time",
        "undecodable: the value is no change of a row: its op is 'u'",
        "undecodable: the value is no change of a row: its op is ''",
    ]


def test_r5_in_real_time_the_first_interval_ends_when_the_tables_are_loaded(
    spark: Spark, broker: Broker, topic: str, checkpoint: str
) -> None:
    stream, cities, out = f"{topic}-s", f"{topic}-t", f"{topic}-out"
    for name in (stream, cities, out):
        create(broker, name)
    send(broker, stream, [(0, event("early", 1))])
    for n in range(3):
        version(broker, cities, f"n{n}", "Rome", n)
    client = {"bootstrap.servers": broker.bootstrap}
    frame = read_log(spark, spec(stream, table(cities)), client).selectExpr(
        f"'{out}' as topic", "key", "value", "time", "cast(null as array<struct<key:string,value:binary>>) as headers"
    )
    writer = frame.writeStream.outputMode("update").option("checkpointLocation", checkpoint)
    running = write_log(spark, writer.trigger(realTime="10 minutes"), client, realtime=True).start()
    try:
        found = records(broker, out, at_least=4)
        version(broker, cities, "n9", "Oslo", 9)  # and then it follows the table with the streams
        found = records(broker, out, at_least=5)
    finally:
        running.stop()
    assert [record.key() for record in found] == [b"n0", b"n1", b"n2", b"k", b"n9"]
