"""Staged rows become files of a lake table: linked as they are where they fit, else split by partition.

A file belongs to a table only when the table's log names it; until then nobody reads it.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from headrace.base.ids import random_id
from headrace.expr.types import Columns
from headrace.model.target import LakeTable
from headrace.stores import arrow, footer, lake_schema, partition, staged
from headrace.stores.partition import Values

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from deltalake.transaction import AddAction


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A file in a table's directory, not yet in its log."""

    path: str  # relative to the table
    values: Values
    metadata: pq.FileMetaData

    def action(self, folder: Path, columns: Collection[str], *, change: bool = True) -> AddAction:
        """What the log says about it; whether it changes the table's rows, or only how they lie."""
        from deltalake.transaction import AddAction

        found = (folder / self.path).stat()
        told = footer.statistics(self.metadata, set(columns) - set(self.values))
        return AddAction(self.path, found.st_size, self.values, int(found.st_mtime * 1000), change, json.dumps(told))


def place(folder: Path, target: LakeTable, columns: Columns, files: Sequence[Path]) -> list[Placed]:
    """Puts the staged rows into the table's directory, under names that no one else has; all of them, or none."""
    import pyarrow.parquet as pq

    placed: list[Placed] = []
    rest: list[Path] = []
    try:
        for file in files:
            metadata = pq.read_metadata(file)
            values = _whole(metadata, target, columns)
            if values is None:
                rest.append(file)
            elif metadata.num_rows:
                placed.append(_link(folder, file, values, metadata))
        if rest:
            for values, rows in _split(staged.read(rest, target, columns), target, columns):
                placed.append(write(folder, rows, values))
    except BaseException:
        remove(folder, placed)
        raise
    return placed


def typed(rows: pa.Table, target: LakeTable, columns: Columns, *extra: str) -> pa.Table:
    """Rows with the columns of the table, in its types, and these beside them."""
    import pyarrow as pa

    fields = [*arrow.fields(columns), *(rows.schema.field(name) for name in extra)]
    before = rows = rows.select([field.name for field in fields]).cast(pa.schema(fields))
    for part in target.partition:
        rows = rows.drop_columns([] if part.unit else [part.column])
        rows = rows.append_column(part.name, lake_schema.part_values(before, part))
    return rows


def remove(folder: Path, placed: Sequence[Placed]) -> None:
    for file in placed:
        (folder / file.path).unlink(missing_ok=True)


def _whole(metadata: pq.FileMetaData, target: LakeTable, columns: Columns) -> Values | None:
    """The one partition that all rows of a file are in; None if there are several, or its footer does not tell, or it
    has other types than the table."""
    import pyarrow as pa

    there = {field.name: field.type for field in metadata.schema.to_arrow_schema()}
    if not all(f.name in there and arrow.same(there[f.name], f.type) for f in arrow.fields(columns)):
        return None
    values: dict[str, str | None] = {}
    for part in target.partition:
        bounds = footer.bounds(metadata).get(part.column)
        if bounds is None or bounds.nulls:
            return None
        ends = pa.table({part.column: pa.array([bounds.least, bounds.greatest], there[part.column])})
        least, greatest = lake_schema.part_values(ends, part).to_pylist()
        if least != greatest:
            return None
        values[part.name] = partition.text(least)
    return values


def _split(rows: pa.Table, target: LakeTable, columns: Columns) -> Iterator[tuple[Values, pa.Table]]:
    """The rows of each partition."""
    names = lake_schema.partitions(target)
    rows = typed(rows, target, columns)
    if not names:
        yield {}, rows
        return
    ordered = rows.sort_by([(name, "ascending") for name in names])
    groups = ordered.group_by(names, use_threads=False).aggregate([([], "count_all")])
    start = 0
    for group in groups.to_pylist():
        values = {name: partition.text(group[name]) for name in names}
        yield values, ordered.slice(start, group["count_all"]).drop_columns(names)
        start += group["count_all"]


def _link(folder: Path, file: Path, values: Values, metadata: pq.FileMetaData) -> Placed:
    """The staged file stays where it is until its batch is over, so that a commit can be tried again."""
    with _whole_or_not(folder, values) as path:
        try:
            os.link(file, folder / path)
        except OSError:  # another file system, or one without links
            shutil.copyfile(file, folder / path)
    return Placed(path=path, values=values, metadata=metadata)


def write(folder: Path, rows: pa.Table, values: Values) -> Placed:
    import pyarrow.parquet as pq

    with _whole_or_not(folder, values) as path:
        pq.write_table(rows, folder / path, compression="zstd")
    return Placed(path=path, values=values, metadata=pq.read_metadata(folder / path))


@contextmanager
def _whole_or_not(folder: Path, values: Values) -> Iterator[str]:
    """A path that nobody else uses, a driver that was thought dead included. What could not be written to its end is
    removed: a full disk needs the space."""
    path = str(PurePosixPath(partition.directory(values), f"{random_id()}.parquet"))
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    try:
        yield path
    except BaseException:
        (folder / path).unlink(missing_ok=True)
        raise
