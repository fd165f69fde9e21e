"""Repair: what is mended, what is refused, and that results stay exactly once."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from headrace.log.broker import Broker
from headrace.spark.checkpoint import Checkpoint
from headrace.spark.checkpoint_files import SparkFiles
from headrace.spark.checkpoint_repair import mend, mends
from headrace.spark.checkpoint_verify import leftovers, verify
from headrace.spark.checksum import sum_file
from headrace.spark.commits import last_written
from headrace.spark.session import Spark
from tests.spark.keeping import BATCHES, Kept, flip, keep, tear

NOW = datetime(2026, 11, 15, 16, tzinfo=UTC)


def repaired(checkpoint: Checkpoint, written: int | None) -> list[str]:
    planned = mends(checkpoint, written=written)
    if planned:
        mend(checkpoint, planned, NOW)
    return [one.what for one in planned]


def grave(checkpoint: Checkpoint) -> list[str]:
    return [one.what for one in verify(checkpoint) if one.severity in ("warning", "error")]


@pytest.fixture
def copy(kept: Kept, tmp_path: Path) -> Checkpoint:
    return kept.copy(tmp_path / "copy")


@pytest.fixture
def last(copy: Checkpoint) -> int:
    return max(SparkFiles(folder=copy.spark).planned())


def test_a_whole_checkpoint_is_left_alone(copy: Checkpoint, last: int) -> None:
    assert repaired(copy, last) == []


def test_what_a_killed_driver_left_is_set_aside(copy: Checkpoint, last: int) -> None:
    left = [
        copy.spark / "offsets" / ".14.0a1b.tmp",
        copy.spark / "commits" / "999.crc",
        copy.folder / "counts.new",
        copy.folder / "staged" / "13",
    ]
    for file in left[:3]:
        file.write_text("half")
    left[3].mkdir(parents=True)
    assert sorted(leftovers(copy)) == sorted(left)

    assert len(repaired(copy, last)) == 4

    assert leftovers(copy) == []
    assert (copy.aside / "20261115-160000" / "spark" / "offsets" / ".14.0a1b.tmp").read_text() == "half"


def test_counts_that_cannot_be_read_are_set_aside(copy: Checkpoint, last: int) -> None:
    tear(copy.counts_file)
    assert repaired(copy, last) == ["set aside counts.json"]
    assert grave(copy) == []


def test_a_damaged_commit_of_the_last_batch_is_set_aside_and_the_batch_runs_again_once(
    spark: Spark, broker: Broker, topic: str, tmp_path: Path
) -> None:
    kept = keep(spark, broker, topic, tmp_path)
    copy, once = kept.flowing.checkpoint, kept.flowing.ids(f"{topic}-once")
    last = max(SparkFiles(folder=copy.spark).planned())
    flip(copy.spark / "commits" / str(last))

    assert repaired(copy, None) == [f"set aside the damaged commit of batch {last}, so that the batch runs again"]
    assert grave(copy) == []
    kept.run(copy, batches=[40])  # windows before it close

    assert sum(times for _, _, times, _ in kept.results()) == 100 * BATCHES
    assert (
        Counter(kept.flowing.ids(f"{topic}-once")).total() == len(once) + 100
    )  # its token was there: none is there twice


def test_a_damaged_commit_is_left_if_the_state_before_it_is_gone(copy: Checkpoint, last: int) -> None:
    flip(copy.spark / "commits" / str(last))
    flip(copy.spark / "commits" / str(last - 1))
    assert repaired(copy, last) == []
    assert len(grave(copy)) == 2


@pytest.mark.parametrize(("written", "mended"), [(-1, True), (0, False), (None, False)])
def test_a_damaged_plan_is_set_aside_only_if_nothing_of_it_was_written(
    copy: Checkpoint, last: int, written: int | None, mended: bool
) -> None:
    """`written` counts from the damaged batch: -1 is the one before it."""
    (copy.spark / "commits" / str(last)).unlink()
    sum_file(copy.spark / "commits" / str(last)).unlink()
    tear(copy.spark / "offsets" / str(last))

    assert bool(repaired(copy, None if written is None else last + written)) == mended
    assert bool(grave(copy)) != mended


def test_a_damaged_plan_of_a_committed_batch_is_beyond_repair(copy: Checkpoint, last: int) -> None:
    tear(copy.spark / "offsets" / str(last))
    assert repaired(copy, -1) == []


def test_the_last_token_is_the_last_batch_with_rows(kept: Kept, last: int) -> None:
    flowing = kept.flowing
    query = SparkFiles(folder=flowing.checkpoint.spark).query()

    assert last_written(flowing.broker, flowing.plan.app, flowing.job("live").id, query) in (last, last - 1)
    assert last_written(flowing.broker, flowing.plan.app, flowing.job("live").id, "another") == -1
