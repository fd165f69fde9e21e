"""Rescaling: state spread over 2, then 5, then 3 partitions gives what it would have given in 2, to the letter."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.base.errors import RescaleOpen
from headrace.log.broker import Broker
from headrace.spark.checkpoint import Checkpoint
from headrace.spark.checkpoint_files import SparkFiles
from headrace.spark.checkpoint_rescale import partitions, rescale, undo_cut_off
from headrace.spark.checkpoint_verify import verify
from headrace.spark.query import start
from headrace.spark.session import Spark
from tests.spark.bench import Bench
from tests.spark.flowing import visit_on
from tests.spark.keeping import Kept
from tests.spark.test_views import Viewing

DAY = datetime(2020, 1, 1, 10, tzinfo=UTC)


class Counting(Bench):
    """Everything that waits for time: windows, sessions, duplicates that are forgotten, patterns that run out."""

    def __init__(self, spark: Spark, broker: Broker, home: Path, topic: str) -> None:
        app, self.event = hr.App("bench"), visit_on(topic)
        stream = app.stream(self.event, disorder="30 s", idle=None)
        hopping = stream.window(hr.hopping("10 min", every="5 min"), lateness="1 min").agg(times=hr.count())
        hopping.to(app.topic(f"{topic}-hopping"))
        sessions = stream.window(hr.session(gap="2 min"), lateness="0 s").agg(spent=hr.sum("spent"))
        sessions.to(app.topic(f"{topic}-sessions"))
        stream.dedup("visit", within="15 min").to(app.topic(f"{topic}-once"))
        left = app.pattern("left", key="page").first("one", stream.where("spent > 50"))
        left.never("more", stream.where("spent > 90")).within("6 min").matches.to(app.topic(f"{topic}-left"))
        super().__init__(spark, broker, home, app)

    def rows(self, seed: int, count: int) -> list[Any]:
        """An hour, each part of it with pages of its own and some of all parts: most keys wait for time alone."""
        chance = random.Random(seed)
        at = lambda n: DAY + timedelta(minutes=20 * seed, seconds=1200 * n // count - chance.choice((0, 0, 20, 200)))  # noqa: E731
        pages = [f"p{chance.choice((seed, 0))}-{chance.randrange(60)}" for _ in range(count)]
        return [
            self.event(f"v{chance.randrange(count)}", page, at(n), chance.randrange(100))
            for n, page in enumerate(pages)
        ]


def run(bench: Bench) -> None:
    """All that is there; the query is stopped as Ctrl-C does, be a batch finished or not."""
    bench.checkpoint.open(bench.flow).close()
    query = start(bench.spark, bench.job("live", 100))
    query.processAllAvailable()
    query.stop()


def test_windows_sessions_duplicates_and_patterns_go_on_in_other_partitions(
    spark: Spark, broker: Broker, topic: str, tmp_path: Path
) -> None:
    bench = Counting(spark, broker, tmp_path, topic)
    for part, to in enumerate((5, 3, None), 1):
        bench.fill(bench.rows(part, 300))
        run(bench)
        if to is not None:
            before = partitions(bench.checkpoint)
            aside = rescale(spark, bench.checkpoint, to)
            assert partitions(bench.checkpoint) == to
            assert partitions(Checkpoint(folder=_as_checkpoint(aside))) == before
            assert [one for one in verify(bench.checkpoint) if one.severity in ("warning", "error")] == []
    assert len(SparkFiles(folder=bench.checkpoint.spark).partitions(0)) == 5  # the old ones are left
    bench.check(stopped=True)


def _as_checkpoint(aside: Path) -> Path:
    (aside / "spark").symlink_to(aside)
    return aside


def test_views_whose_state_lies_in_pieces_go_on_in_other_partitions(
    spark: Spark, broker: Broker, topic: str, tmp_path: Path
) -> None:
    bench = Viewing(spark, broker, tmp_path, topic, all=False)
    for part, to in enumerate((3, None), 1):
        bench.change(part, 60)
        run(bench)
        if to is not None:
            rescale(spark, bench.checkpoint, to)
    bench.check(stopped=True)


def test_a_rescale_that_was_cut_off_stands_in_the_way_and_can_be_undone(kept: Kept, tmp_path: Path) -> None:
    checkpoint = kept.copy(tmp_path / "copy")
    logs = [f for name in ("offsets", "commits") for f in (checkpoint.spark / name).iterdir() if f.suffix != ".crc"]
    before = [file.read_bytes() for file in logs]
    aside = rescale(kept.flowing.spark, checkpoint, 4)
    assert [file.read_bytes() for file in logs] != before
    checkpoint.rescale_file.write_text(aside.name)  # it died before its last step
    with pytest.raises(RescaleOpen, match="was cut off"):
        checkpoint.open(kept.flowing.flow)

    undo_cut_off(checkpoint)

    checkpoint.open(kept.flowing.flow).close()
    assert [file.read_bytes() for file in logs] == before
    assert [one for one in verify(checkpoint) if one.severity in ("warning", "error")] == []
