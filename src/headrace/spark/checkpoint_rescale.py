"""Another number of partitions for the keyed state of a flow that does not run (jvm/Rescale.scala does the work).

The state after the last committed batch is written anew beside the old, and then the logs are made to name it. No batch
is added, so tokens and plans stay true, also those of a batch that is not finished. A copy of the directory is kept:
links, since no file of a checkpoint is ever changed in place. Until all is done a note stands in the way of a run.
"""

from __future__ import annotations

import json
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path

from headrace.base.errors import UsageError
from headrace.spark.checkpoint import Checkpoint
from headrace.spark.checkpoint_files import PARTITIONS, SparkFiles, read_planned
from headrace.spark.checksum import edit, replace
from headrace.spark.session import Spark
from headrace.spark.trouble import translated


def partitions(checkpoint: Checkpoint) -> int:
    """How many there are now."""
    plans = SparkFiles(folder=checkpoint.spark).planned()
    if not plans:
        raise UsageError(
            f"no batch was planned yet in {checkpoint.folder}",
            why="there is no state whose partitions could be changed",
            fix="set spark.shuffle_partitions before the first run",
        )
    return read_planned(plans[max(plans)]).partitions


def rescale(spark: Spark, checkpoint: Checkpoint, to: int) -> Path:
    """Does it; gives where the state as it was is kept. The checkpoint must be held and whole."""
    aside = checkpoint.aside / f"{datetime.now(UTC):%Y%m%d-%H%M%S}-before-rescale"
    shutil.copytree(checkpoint.spark, aside, copy_function=_link)
    checkpoint.rescale_file.write_text(aside.name)
    files = SparkFiles(folder=checkpoint.spark)
    last = max(files.committed(), default=-1)
    if last >= 0 and files.operators():
        with translated(spark.log):
            ids = spark.session._jvm.org.apache.spark.sql.headrace.Rescale.apply(
                spark.session._jsparkSession, f"file:{aside}", f"file:{checkpoint.spark}", last, to
            )
        edit(files.committed()[last], lambda told: told | {"stateUniqueIds": json.loads(ids)})
    for operator in files.operators().values():
        newest = max(
            (f for f in (operator / "_metadata" / "v2").iterdir() if f.name.isdigit()), key=lambda f: int(f.name)
        )
        edit(
            newest,
            lambda told: told | {"stateStoreInfo": [s | {"numPartitions": to} for s in told["stateStoreInfo"]]},
        )
    for number, file in files.planned().items():
        if number >= last:
            edit(file, lambda told: told | {"conf": told["conf"] | {PARTITIONS: str(to)}})
    checkpoint.rescale_file.unlink()
    return aside


def undo_cut_off(checkpoint: Checkpoint) -> None:
    """Puts the logs back as they were before a rescale that did not come to its end; new state is left unnamed."""
    if not checkpoint.rescale_file.exists():
        return
    aside = checkpoint.aside / checkpoint.rescale_file.read_text()
    logs = [*aside.glob("offsets/*"), *aside.glob("commits/*"), *aside.glob("state/*/_metadata/v2/*")]
    for file in logs:
        now = checkpoint.spark / file.relative_to(aside)
        if file.suffix != ".crc" and now.read_bytes() != file.read_bytes():
            replace(now, file.read_text())
    checkpoint.rescale_file.unlink()


def _link(source: str, to: str) -> str:
    try:
        os.link(source, to)
    except OSError:  # another file system
        shutil.copy2(source, to)
    return to
