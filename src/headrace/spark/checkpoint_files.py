"""Spark's checkpoint on disk, read without a JVM: which batches were planned and committed, which state is kept.

offsets/<batch>     version, Spark's settings of the batch, the log source's offset (jvm/LogOffset.scala)
commits/<batch>     version, the next watermark, the id of the state that each partition of each operator wrote
state/<operator>/<partition>/<version>_<id>.changelog | .zip       what a batch changed | a whole state, with its tables
                                                                   in SSTs/; batch n writes version n + 1
sources/0/          the log source's own small files (jvm/Kept.scala)
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from headrace.base.clock import EPOCH

PARTITIONS = "spark.sql.shuffle.partitions"
CHANGELOG, SNAPSHOT = ".changelog", ".zip"

Place = tuple[str, int]


class Torn(ValueError):
    """A file that does not hold what it should; says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A batch as it was planned: what it reads of each partition, and under which watermark."""

    number: int
    at: datetime
    watermark: datetime | None
    reads: dict[Place, tuple[int, int]]
    """From where (with it) to where (without)."""
    partitions: int
    """Of keyed state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """A batch that ended, and the ids of the states it left: by operator, then partition."""

    number: int
    watermark: datetime | None
    states: dict[int, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class StateFile:
    """One version of a partition's state: a whole one, or what changed since the version before."""

    file: Path
    version: int
    id: str

    @property
    def snapshot(self) -> bool:
        return self.file.suffix == SNAPSHOT

    def tables(self) -> list[tuple[Path, int]]:
        """The files that a snapshot is made of, with their sizes. Raises Torn."""
        try:
            with zipfile.ZipFile(self.file) as packed:
                broken = packed.testzip()
                files = _object(packed.read("metadata").decode().partition("\n")[2])["sstFiles"]
                found = [(self.file.parent / "SSTs" / one["dfsSstFileName"], int(one["sizeBytes"])) for one in files]
        except Exception as failed:  # zipfile raises many kinds over a damaged archive
            raise Torn(f"it is no whole archive: {failed}") from None
        if broken is not None:
            raise Torn(f"{broken} in it is damaged")
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkFiles:
    """The directory that Spark calls the checkpoint."""

    folder: Path

    @property
    def plans(self) -> Path:
        return self.folder / "offsets"

    def planned(self) -> dict[int, Path]:
        """The log of planned batches, by number; Spark keeps the last hundred or so."""
        return _numbered(self.plans)

    def committed(self) -> dict[int, Path]:
        return _numbered(self.folder / "commits")

    def operators(self) -> dict[int, Path]:
        return _numbered(self.folder / "state")

    def partitions(self, operator: int) -> dict[int, Path]:
        return _numbered(self.operators()[operator])

    def query(self) -> str:
        """Spark's own id of the query. Raises Torn."""
        return str(_object((self.folder / "metadata").read_text())["id"])


def read_planned(file: Path) -> Planned:
    """Raises Torn."""
    settings, source = _entry(file, versions=("v1",), lines=2)
    told, offset = _object(settings), _object(source)
    try:
        reads = {
            (topic, int(partition)): (int(part["from"]), int(part["to"]))
            for topic, parts in offset["parts"].items()
            for partition, part in parts.items()
        }
        return Planned(
            number=int(file.name),
            at=_moment(offset["at"]),
            watermark=_watermark(offset.get("watermark")),
            reads=reads,
            partitions=int(told["conf"][PARTITIONS]),
        )
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as broken:
        raise Torn(f"it lacks something: {broken!r}") from None


def read_committed(file: Path) -> Committed:
    """Raises Torn."""
    (line,) = _entry(file, versions=("v1", "v2"), lines=1)
    told = _object(line)
    try:
        return Committed(
            number=int(file.name),
            watermark=_watermark(told.get("nextBatchWatermarkMs")),
            states={
                int(operator): tuple(str(stores[0]) for stores in partitions)
                for operator, partitions in (told.get("stateUniqueIds") or {}).items()
            },
        )
    except (KeyError, TypeError, AttributeError, IndexError, ValueError, OverflowError) as broken:
        raise Torn(f"it lacks something: {broken!r}") from None


def state_files(folder: Path) -> Iterator[StateFile]:
    """Of one partition of one operator."""
    for file in folder.iterdir():
        version, _, id = file.stem.partition("_")
        if file.suffix in (CHANGELOG, SNAPSHOT) and version.isdigit():
            yield StateFile(file=file, version=int(version), id=id)


def read_json(file: Path) -> dict[str, Any]:
    """A file that is one JSON object. Raises Torn."""
    return _object(_text(file))


def _entry(file: Path, *, versions: tuple[str, ...], lines: int) -> list[str]:
    """An entry of one of Spark's logs: a version, then so many lines."""
    version, *rest = _text(file).split("\n")
    if version not in versions:
        raise Torn(f"it begins with {version[:20]!r}, and not with a version that is known")
    if len(rest) != lines:
        raise Torn(f"it has {len(rest)} lines after the version, and not {lines}")
    return rest


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except UnicodeDecodeError:
        raise Torn("it is no text") from None


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as broken:
        raise Torn(f"it is no JSON: {broken}") from None
    if not isinstance(found, dict):
        raise Torn("it is no JSON object")
    return found


def _numbered(folder: Path) -> dict[int, Path]:
    if not folder.is_dir():
        return {}
    return dict(sorted((int(file.name), file) for file in folder.iterdir() if file.name.isdigit()))


def _watermark(ms: Any) -> datetime | None:
    """Spark's 0 is "none yet"."""
    return None if not ms else _moment(ms)


def _moment(ms: int) -> datetime:
    return EPOCH + timedelta(milliseconds=ms)
