"""Damage to a checkpoint: verify finds it, and a run ends loudly or gives the same results, never others in silence."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headrace.base.errors import CheckpointDamaged, CommitsLost, HeadraceError, PlanChanged
from headrace.log.broker import Broker
from headrace.observe.finding import Finding
from headrace.plan import text
from headrace.spark.checkpoint import Checkpoint
from headrace.spark.checkpoint_files import SparkFiles, read_committed, state_files
from headrace.spark.checkpoint_state import chains
from headrace.spark.checkpoint_verify import verify
from headrace.spark.session import Spark
from tests.spark.keeping import BATCHES, Kept, change, empty, flip, keep, rows_of, tear

SHOWN_ONLY = ("counts.json", "driver.lock", "sizes.csv")


def wrong(found: list[Finding]) -> list[Finding]:
    return [one for one in found if one.severity in ("warning", "error")]


def look(kept: Kept, checkpoint: Checkpoint) -> list[Finding]:
    return wrong(verify(checkpoint, declared=text.lines(kept.flowing.flow)))


def files(checkpoint: Checkpoint) -> list[Path]:
    """All that were written as they are; checksums say nothing by themselves."""
    found = sorted(f for f in checkpoint.folder.rglob("*") if f.is_file() and f.suffix != ".crc")
    return [file for file in found if file.name not in SHOWN_ONLY]


def test_a_checkpoint_as_it_was_written_is_whole(kept: Kept) -> None:
    found = verify(kept.flowing.checkpoint, declared=text.lines(kept.flowing.flow))

    assert [one for one in found if one.severity != "fine"] == []
    assert {one.check for one in found} == {"plan", "counts", "batches", "state"}


@pytest.mark.parametrize("damage", [flip, tear, empty])
def test_verify_finds_every_damaged_file(kept: Kept, tmp_path: Path, damage: Callable[[Path], None]) -> None:
    checkpoint = kept.copy(tmp_path / "copy")
    for file in files(checkpoint):
        before = file.read_bytes()
        if not before or file == checkpoint.commits_file:
            continue
        damage(file)
        found = look(kept, checkpoint)
        assert str(file) in {one.where for one in found}, file
        assert all(one.why and one.fix for one in found)
        file.write_bytes(before)
    assert look(kept, checkpoint) == []


def test_verify_finds_what_is_missing(kept: Kept, tmp_path: Path) -> None:
    checkpoint = kept.copy(tmp_path / "copy")
    spark = SparkFiles(folder=checkpoint.spark)
    last = max(spark.planned())
    needed = [spark.planned()[last], spark.planned()[last - 2], spark.committed()[last - 1], spark.folder / "metadata"]
    for chain in chains(spark, {n: read_committed(f) for n, f in spark.committed().items()}, last):
        needed += [file.file for file in chain.files]
        needed += [table for file in chain.files if file.snapshot for table, _ in file.tables()]
    assert any(file.suffix == ".sst" for file in needed)
    for file in needed:
        before = file.read_bytes()
        file.unlink()
        assert look(kept, checkpoint), file
        file.write_bytes(before)


def damages(checkpoint: Checkpoint) -> Iterator[tuple[str, Callable[[], None], type[HeadraceError]]]:
    """One of each kind, chosen so that nothing but a checksum or a comparison could tell."""
    spark = SparkFiles(folder=checkpoint.spark)
    last = max(spark.planned())
    settled = spark.folder / "sources" / "0" / "settled.json"
    later = lambda ms: ms + 3_600_000  # noqa: E731
    changes = next(f.file for f in state_files(spark.partitions(0)[0]) if f.version == last + 1 and not f.snapshot)
    yield "offset", lambda: change(spark.planned()[last], "parts", _further), CheckpointDamaged
    yield "commit", lambda: change(spark.committed()[last], "nextBatchWatermarkMs", later), CheckpointDamaged
    yield "settled", lambda: change(settled, "watermark", later), CheckpointDamaged
    yield "query", lambda: change(spark.folder / "metadata", "id", _another), CheckpointDamaged
    yield "changes", lambda: flip(changes), CheckpointDamaged
    yield "plan", lambda: flip(checkpoint.plan_file), PlanChanged
    yield "commits", lambda: flip(checkpoint.commits_file), CommitsLost


def _another(id: str) -> str:
    return ("1" if id[0] == "0" else "0") + id[1:]


def _further(parts: dict[str, dict[str, dict[str, int]]]) -> dict[str, dict[str, dict[str, int]]]:
    """One record less to read: it would be lost."""
    for places in parts.values():
        places["0"]["to"] += 1
    return parts


def test_a_run_from_a_damaged_checkpoint_ends_loudly_or_is_equal(
    spark: Spark, broker: Broker, topic: str, tmp_path: Path
) -> None:
    kept = keep(spark, broker, topic, tmp_path / "home")
    kept.flowing.send(*rows_of(kept.event, 40))  # windows before it close
    names = [name for name, _, _ in damages(kept.copy(tmp_path / "whole"))]
    for name in names:
        checkpoint = kept.copy(tmp_path / name)
        damage, error = next((damage, error) for found, damage, error in damages(checkpoint) if found == name)
        damage()
        with pytest.raises(error):
            kept.run(checkpoint)
        assert kept.results() == set()

    # what no start reads any more changes nothing; and a copy needs nothing of what it was copied from
    checkpoint = kept.copy(tmp_path / "old")
    shutil.rmtree(kept.folder)
    flip(SparkFiles(folder=checkpoint.spark).planned()[2])
    kept.run(checkpoint)
    assert sum(times for _, _, times, _ in kept.results()) == 100 * BATCHES
