"""A real checkpoint of a flow with state, and ways to damage a copy of it."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.errors import StreamingQueryException

import headrace as hr
from headrace.log.broker import Broker
from headrace.spark.checkpoint import Checkpoint
from headrace.spark.query import start
from headrace.spark.session import Spark
from headrace.spark.totals import Totals
from headrace.spark.trouble import translate
from tests.spark.flowing import Flowing, visit_on

DAY = datetime(2020, 1, 1, 10, tzinfo=UTC)
BATCHES = 4
"""The first half leave snapshots, the others changes."""
CHANGES = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"


def site(topic: str) -> tuple[hr.App, Any]:
    """Visits counted by page, in windows that are open for long, so that there is state; and the same once each."""
    app, event = hr.App(topic), visit_on(topic)
    stream = app.stream(event, disorder="0 s", idle=None)
    windows = stream.window(hr.tumbling("1 h"), lateness="0 s").agg(times=hr.count(), spent=hr.sum("spent"))
    windows.to(app.topic(f"{topic}-out", partitions=1))
    stream.dedup("visit", within="2 h").to(app.topic(f"{topic}-once", partitions=1))
    return app, event


def rows_of(event: Any, batch: int) -> list[Any]:
    return [
        event(f"v{n}", f"p{n % 40}", DAY + timedelta(minutes=2 * batch, seconds=n % 100), n)
        for n in range(100 * batch, 100 * batch + 100)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A flow that ran some batches and stopped."""

    flowing: Flowing
    app: hr.App
    event: Any

    @property
    def folder(self) -> Path:
        return self.flowing.checkpoint.folder

    def copy(self, to: Path) -> Checkpoint:
        shutil.copytree(self.folder, to)
        return Checkpoint(folder=to)

    def run(self, checkpoint: Checkpoint, *, batches: Iterable[int] = ()) -> None:
        """Runs the flow from a checkpoint until all that is there has been read, then feeds it; raises what ends it."""
        spark, held = self.flowing.spark, checkpoint.open(self.flowing.flow)
        try:
            query = start(spark, replace(self.flowing.job("live"), checkpoint=checkpoint))
            try:
                query.processAllAvailable()
                for batch in batches:
                    self.flowing.send(*rows_of(self.event, batch))
                    query.processAllAvailable()
                told = spark.jvm.Counters.take(str(query.runId))
                Totals(self.flowing.flow, checkpoint.counts_file).take(told, ended=query.lastProgress.batchId)
            except StreamingQueryException as broken:
                raise translate(broken, spark.log) from broken
            finally:
                query.stop()
        finally:
            held.close()

    def results(self) -> set[tuple[str, str, int, int]]:
        """Windows that closed, each once."""
        rows = self.flowing.rows(f"{self.flowing.topic}-out")
        found = {(row["page"], row["window_start"], row["times"], row["spent"]) for row in rows}
        assert len(found) == len(rows)
        return found


def keep(spark: Spark, broker: Broker, topic: str, home: Path) -> Kept:
    app, event = site(topic)
    kept = Kept(flowing=Flowing(spark, broker, home, app), app=app, event=event)
    with snapshots(spark):
        kept.run(kept.flowing.checkpoint, batches=range(BATCHES // 2))
    kept.run(kept.flowing.checkpoint, batches=range(BATCHES // 2, BATCHES))
    return kept


@contextmanager
def snapshots(spark: Spark) -> Iterator[None]:
    """Every batch writes its whole state, as Spark does by itself once in a while."""
    spark.session.conf.set(CHANGES, "false")
    try:
        yield
    finally:
        spark.session.conf.set(CHANGES, "true")


def flip(file: Path) -> None:
    """One bit, anywhere, in each file at the same place."""
    data = bytearray(file.read_bytes())
    chance = random.Random(file.name)
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    _write(file, bytes(data))


def tear(file: Path) -> None:
    """The second half is gone."""
    data = file.read_bytes()
    _write(file, data[: len(data) // 2])


def empty(file: Path) -> None:
    _write(file, b"")


def change(file: Path, name: str, to: Callable[[Any], Any]) -> None:
    """Another value of that name in the last line, and still whole JSON: what only a checksum can tell."""
    *before, last = file.read_text().split("\n")
    told = json.loads(last)
    told[name] = to(told[name])
    _write(file, "\n".join([*before, json.dumps(told, separators=(",", ":"))]).encode())


def _write(file: Path, data: bytes) -> None:
    file.unlink()  # copies may share the file itself
    file.write_bytes(data)
