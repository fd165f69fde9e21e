"""Mending a checkpoint: only what cannot change a result; nothing is deleted, what goes is set aside.

Files that a killed driver left: nobody reads them. counts.json: it is only shown. The commit of the last batch: the
batch runs again over the same rows from the state before it, and its token says whether they were written. The plan of
a batch that is not committed: only if nothing of it was written, since planned anew it would read other rows under the
same number. All else is left as it is.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from headrace.spark.checkpoint import Checkpoint
from headrace.spark.checkpoint_files import SparkFiles, Torn, read_committed, read_json, read_planned
from headrace.spark.checkpoint_state import chains
from headrace.spark.checkpoint_verify import leftovers
from headrace.spark.checksum import check, sum_file


@dataclass(frozen=True, slots=True, kw_only=True)
class Mend:
    """Files that are to be taken away, and why that is safe."""

    files: tuple[Path, ...]
    what: str
    why: str


def mends(checkpoint: Checkpoint, *, written: int | None) -> list[Mend]:
    """All that can be mended. `written`: the last batch of which anything stands in an output; None: nobody knows."""
    found = [
        Mend(files=(file,), what=f"set aside {file.name}", why="a killed driver left it, and nobody reads it")
        for file in leftovers(checkpoint)
    ]
    if checkpoint.counts_file.exists() and _torn(checkpoint.counts_file, read_json):
        why = "it is only shown; counting begins anew"
        found.append(Mend(files=(checkpoint.counts_file,), what="set aside counts.json", why=why))
    files = SparkFiles(folder=checkpoint.spark)
    return [*found, *_last_commit(files), *_last_plan(files, written)]


def mend(checkpoint: Checkpoint, planned: list[Mend], now: datetime) -> Path:
    """Takes the files away; gives where they are now."""
    aside = checkpoint.aside / f"{now:%Y%m%d-%H%M%S}"
    for file in [file for one in planned for file in one.files]:
        to = aside / file.relative_to(checkpoint.folder)
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(file, to)
    return aside


def _last_commit(files: SparkFiles) -> list[Mend]:
    plans, commits = files.planned(), files.committed()
    last = max(plans, default=-1)
    if last not in commits or not _torn(commits[last], read_committed) or _torn(plans[last], read_planned):
        return []
    if last > 0 and not _whole(files, last - 1):
        return []
    return [
        Mend(
            files=_with_sum(commits[last]),
            what=f"set aside the damaged commit of batch {last}, so that the batch runs again",
            why="its rows are planned and stay the same; its token says whether they were written, and then they are "
            "dropped. Outputs at-least-once may get them again, as they promise",
        )
    ]


def _last_plan(files: SparkFiles, written: int | None) -> list[Mend]:
    plans, commits = files.planned(), files.committed()
    last = max(plans, default=-1)
    if last < 0 or last in commits or not _torn(plans[last], read_planned):
        return []
    if written is None or written >= last:
        return []
    if last > 0 and (last - 1 not in plans or _torn(plans[last - 1], read_planned) or not _whole(files, last - 1)):
        return []
    return [
        Mend(
            files=_with_sum(plans[last]),
            what=f"set aside the damaged plan of batch {last}, so that it is planned anew",
            why=f"nothing of it was written: the last that was is {written if written >= 0 else 'none'}",
        )
    ]


def _whole(files: SparkFiles, batch: int) -> bool:
    """Whether a start can go on from the state of this batch."""
    commits = files.committed()
    if batch not in commits or _torn(commits[batch], read_committed):
        return False
    good = {number: read_committed(file) for number, file in commits.items() if not _torn(file, read_committed)}
    return all(
        not chain.missing and all(check(file.file) != "bad" for file in chain.files)
        for chain in chains(files, good, batch)
    )


def _torn(file: Path, read: Callable[[Path], object]) -> bool:
    try:
        read(file)
    except Torn:
        return True
    return check(file) == "bad"


def _with_sum(file: Path) -> tuple[Path, ...]:
    """With its checksum, and that first: alone it would be met by the next file of that name."""
    beside = sum_file(file)
    return (beside, file) if beside.exists() else (file,)
