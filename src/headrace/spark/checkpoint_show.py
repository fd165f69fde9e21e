"""A checkpoint's files as a view: how far the flow came, how much state it keeps, who uses it."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from headrace.observe.checkpoint import CheckpointView, OperatorState, Reached
from headrace.spark.checkpoint import Checkpoint
from headrace.spark.checkpoint_files import Place, SparkFiles, Torn, read_committed, read_planned
from headrace.spark.checkpoint_state import chains

Ends = Callable[[list[Place]], dict[Place, int]]
"""Where partitions end now; what is not known is left out."""


def view(
    checkpoint: Checkpoint,
    *,
    app: str,
    version: str,
    flow: str,
    declared: tuple[str, ...] | None = None,
    ends: Ends = lambda _: {},
) -> CheckpointView:
    """What can be read of it, also while a driver runs from it."""
    files = SparkFiles(folder=checkpoint.spark)
    plans, commits = files.planned(), files.committed()
    last = max(commits, default=-1)
    trouble, watermark = "", None
    reached: tuple[Reached, ...] = ()
    state: tuple[OperatorState, ...] = ()
    try:
        if last in plans:
            planned, ended = read_planned(plans[last]), read_committed(commits[last])
            watermark = ended.watermark
            places = {place: to for place, (_, to) in planned.reads.items()}
            reached = _reached(places, ends(list(places)))
            state = _state(files, last)
    except (Torn, OSError) as broken:
        trouble = f"{broken}; `headrace checkpoint verify` says more"
    return CheckpointView(
        app=app,
        version=version,
        flow=flow,
        folder=checkpoint.folder,
        driver=checkpoint.driver(),
        plan_made=_changed(checkpoint.plan_file),
        same_plan=None if declared is None else checkpoint.plan() == declared,
        planned=max(plans, default=-1),
        committed=last,
        watermark=watermark,
        reached=reached,
        state=state,
        keys=_keys(checkpoint),
        trouble=trouble,
    )


def _reached(places: dict[Place, int], ends: dict[Place, int]) -> tuple[Reached, ...]:
    return tuple(
        Reached(topic=topic, partition=partition, offset=to, end=ends.get((topic, partition)))
        for (topic, partition), to in places.items()
    )


def _state(files: SparkFiles, last: int) -> tuple[OperatorState, ...]:
    commits = {number: read_committed(file) for number, file in files.committed().items()}
    found: dict[int, list[tuple[int, int, int]]] = {}
    for chain in chains(files, commits, last):
        sizes = [file.stat().st_size for file in chain.folder.rglob("*") if file.is_file()]
        whole = next((file.version for file in chain.files if file.snapshot), 0)
        found.setdefault(chain.operator, []).append((sum(sizes), len(sizes), whole))
    return tuple(
        OperatorState(
            operator=operator,
            partitions=len(parts),
            bytes=sum(size for size, _, _ in parts),
            files=sum(count for _, count, _ in parts),
            version=last + 1,
            snapshot=min(whole for _, _, whole in parts),
        )
        for operator, parts in found.items()
    )


def _keys(checkpoint: Checkpoint) -> dict[str, int]:
    """The plan's lines begin with the names of the steps, in the order of their ordinals."""
    names = [line.partition(":")[0] for line in checkpoint.plan() or ()]
    try:
        steps = json.loads(checkpoint.counts_file.read_text())
        return {names[int(step)]: terms["keys"] for step, terms in steps.items() if "keys" in terms}
    except (OSError, ValueError, TypeError, IndexError):
        return {}


def _changed(file: Path) -> datetime | None:
    return datetime.fromtimestamp(file.stat().st_mtime, UTC) if file.exists() else None
