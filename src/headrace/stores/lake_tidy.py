"""Small files of a lake table become large ones; its rows stay as they are.

Not by delta-rs' own `optimize.compact`: that of 1.6.6 does not notice that another did the same at the same moment, and
then every row is there twice. Here the entry is made on the version that was read, or not at all.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from headrace.stores import lake_files, partition
from headrace.stores.lake_files import Placed
from headrace.stores.partition import Values

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable
    from deltalake.transaction import RemoveAction

LARGE = 64 * 2**20
"""Bytes of a file that small ones are made into."""
SMALL = LARGE // 4
"""Bytes below which a file is small. One that was made of others soon is not, and is not written again and again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Small files of one partition that together make a large one."""

    values: Values
    paths: tuple[str, ...]
    sizes: tuple[int, ...]

    def removals(self) -> list[RemoveAction]:
        from deltalake.transaction import RemoveAction

        now, values = int(time.time() * 1000), dict(self.values)
        return [RemoveAction(path, False, now, size, values) for path, size in zip(self.paths, self.sizes, strict=True)]


def groups(table: DeltaTable) -> list[Group]:
    """None in a table that asks more of a reader than Parquet: there may be rows that are only marked as deleted."""
    import pyarrow as pa

    if table.protocol().min_reader_version > 1:
        return []
    names = table.metadata().partition_columns
    small: dict[tuple[str | None, ...], list[dict[str, Any]]] = {}
    for file in pa.table(table.get_add_actions()).sort_by("modification_time").to_pylist():
        if file["size_bytes"] < SMALL:
            values = tuple(partition.text(file["partition"][name]) for name in names)
            small.setdefault(values, []).append(file)
    return [
        Group(
            values=dict(zip(names, values, strict=True)),
            paths=tuple(unquote(file["path"]) for file in some),  # the log is a list of URLs
            sizes=tuple(file["size_bytes"] for file in some),
        )
        for values, files in small.items()
        for some in _filled(files)
    ]


def joined(group: Group, table: DeltaTable, folder: Path) -> Placed:
    """One file with the rows of all, in their order. Columns that were added to the table later are null."""
    import pyarrow as pa

    schema = pa.schema([field for field in pa.schema(table.schema()) if field.name not in group.values])
    rows = [schema.empty_table(), *(_read(folder / path, schema) for path in group.paths)]
    return lake_files.write(folder, pa.concat_tables(rows, promote_options="default"), group.values)


def _filled(files: Sequence[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """The files one after the other, as many together as make a large one; what stays alone is left out."""
    taken: list[dict[str, Any]] = []
    for file in files:
        if sum(one["size_bytes"] for one in taken) + file["size_bytes"] > LARGE:
            yield from [taken] if len(taken) > 1 else []
            taken = []
        taken.append(file)
    if len(taken) > 1:
        yield taken


def _read(file: Path, schema: pa.Schema) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    found = pq.ParquetFile(file)
    known = pa.schema([field for field in schema if field.name in found.schema_arrow.names])
    return found.read(columns=known.names).select(known.names).cast(known)
