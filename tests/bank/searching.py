"""Where a text stands in all that the bank wrote: topics, lake, checkpoints, Redis, logs. What is packed is unpacked:
digits in a compressed file are none that anybody finds."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from redis import Redis

from headrace.log.broker import Broker
from headrace.log.read import read
from headrace.spark.session import Spark

Places = dict[str, bytes]
"""Every place with all that stands there."""


def places(spark: Spark, broker: Broker, redis: str, topics: set[str], folder: Path) -> Places:
    """Topics, and files by kind: `topic payments`, `state decide sst`, `lake decisions parquet`, `log spark`."""
    found: dict[str, list[bytes]] = {}
    for topic in topics:
        found[f"topic {topic}"] = [part for message in read(broker, topic) for part in _parts(message)]
    for file in (one for one in folder.rglob("*") if one.is_file()):
        found.setdefault(_place(file.relative_to(folder)), []).extend(_unpacked(spark, file))
    found["redis"] = list(_of_redis(redis))
    found["log spark"] = [file.read_bytes() for file in spark.log.parent.iterdir()]
    return {place: b"\n".join(texts) for place, texts in found.items()}


def _place(file: Path) -> str:
    match file.parts:
        case ("home", "state", app, *_):
            return f"state {app} {file.suffix.removeprefix('.')}".strip()
        case ("home", "lake", table, *_):
            return f"lake {table} {file.suffix.removeprefix('.')}"
        case _:
            return f"file {file.name}"


def _parts(message: Any) -> Iterator[bytes]:
    yield message.key() or b""
    yield message.value() or b""
    for name, value in message.headers() or ():
        yield name.encode()
        yield value or b""


def _unpacked(spark: Spark, file: Path) -> Iterator[bytes]:
    match file.suffix:
        case ".parquet":
            yield repr(pq.read_table(file).to_pylist()).encode()
        case ".zip":
            with zipfile.ZipFile(file) as packed:
                yield from map(packed.read, packed.namelist())
        case ".changelog":
            yield _changes(spark, file)
        case ".sst":
            yield from _keys_and_values(spark, file)
        case _:
            yield file.read_bytes()


def _changes(spark: Spark, file: Path) -> bytes:
    """Of a state, as Spark packs them."""
    jvm = spark.session._jvm
    codec = jvm.org.apache.spark.io.CompressionCodec.createCodec(
        spark.session.sparkContext._jsc.sc().conf(),
        spark.session.conf.get("spark.sql.streaming.stateStore.compression.codec"),
    )
    stream = codec.compressedInputStream(jvm.java.io.FileInputStream(str(file)))
    try:
        return bytes(stream.readAllBytes())
    finally:
        stream.close()


def _keys_and_values(spark: Spark, file: Path) -> Iterator[bytes]:
    """Of a state's snapshot, as RocksDB keeps them."""
    rocksdb = spark.session._jvm.org.rocksdb
    reader = rocksdb.SstFileReader(rocksdb.Options())
    try:
        reader.open(str(file))
        row = reader.newIterator(rocksdb.ReadOptions())
        row.seekToFirst()
        while row.isValid():
            yield bytes(row.key())
            yield bytes(row.value())
            row.next()
        row.status()
    finally:
        reader.close()


def _of_redis(url: str) -> Iterator[bytes]:
    with Redis.from_url(url) as redis:
        for key in redis.scan_iter("*", 1000):
            yield key
            match redis.type(key):
                case b"zset":
                    yield from redis.zrange(key, 0, -1)
                case b"hash":
                    yield from (part for pair in redis.hgetall(key).items() for part in pair)
                case b"string":
                    yield redis.get(key) or b""
                case kind:
                    raise AssertionError(f"{key!r} is a {kind!r}: how it is searched is not written yet")
