"""The files that the next start makes its state of: from the last committed batch back to a whole state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from headrace.spark.checkpoint_files import Committed, SparkFiles, StateFile, state_files


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """The state of a partition of an operator: a snapshot, if one was made yet, and the changes since."""

    operator: int
    partition: int
    folder: Path
    version: int
    files: tuple[StateFile, ...]
    missing: tuple[int, ...]
    """Versions that no file has."""


def chains(files: SparkFiles, commits: Mapping[int, Committed], last: int) -> list[Chain]:
    """After batch `last`; `commits` are those that can be read, and must have that one."""
    return [
        _chain(files, commits, operator, partition, last)
        for operator, ids in sorted(commits[last].states.items())
        for partition in range(len(ids))
    ]


def _chain(files: SparkFiles, commits: Mapping[int, Committed], operator: int, partition: int, last: int) -> Chain:
    folder = files.folder / "state" / str(operator) / str(partition)
    kept: dict[int, list[StateFile]] = {}
    for file in state_files(folder) if folder.is_dir() else ():
        kept.setdefault(file.version, []).append(file)
    needed: list[StateFile] = []
    missing: list[int] = []
    version = last + 1  # batch n leaves version n + 1
    while version > 0:
        fitting = [f for f in kept.get(version, ()) if _fits(f, commits.get(version - 1), operator, partition)]
        whole = next((f for f in fitting if f.snapshot), None)
        changes = next((f for f in fitting if not f.snapshot), None)
        if whole is not None:
            needed.append(whole)
            break
        if changes is not None:
            needed.append(changes)
        else:
            missing.append(version)
            if not any(v < version for v in kept):
                break  # nothing older is left, so one word about it is enough
        version -= 1
    return Chain(
        operator=operator,
        partition=partition,
        folder=folder,
        version=last + 1,
        files=tuple(needed),
        missing=tuple(missing),
    )


def _fits(file: StateFile, commit: Committed | None, operator: int, partition: int) -> bool:
    """Whether the commit names this file. A batch that ran twice left one that nobody names; of batches whose commit
    is gone any file is taken for the right one."""
    if commit is None or operator not in commit.states:
        return True
    ids = commit.states[operator]
    return partition < len(ids) and ids[partition] == file.id
