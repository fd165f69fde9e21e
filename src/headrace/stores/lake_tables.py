"""What is in the lake: its tables, how large they are, and the files that each is made of now."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.stores.lake_schema import KEY

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True)
class TableInfo:
    """One table, at one version."""

    table: str
    rows: int
    files: int
    bytes: int
    version: int
    partition: str
    key: str
    columns: str

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The files of a table at one version, its columns, and which of them stand in the directories' names."""

    files: tuple[str, ...]
    schema: pa.Schema
    partition: tuple[str, ...]


def names(lake: Path) -> list[str]:
    with suppress(FileNotFoundError):
        return sorted(folder.name for folder in lake.iterdir() if (folder / "_delta_log").is_dir())
    return []


def info(folder: Path) -> TableInfo:
    import pyarrow as pa
    from deltalake import DeltaTable

    table = DeltaTable(str(folder))
    added = pa.table(table.get_add_actions())
    told = table.metadata()
    return TableInfo(
        table=f"lake.{folder.name}",
        rows=table.count(),
        files=len(added),
        bytes=sum(added["size_bytes"].to_pylist()),
        version=table.version(),
        partition=", ".join(told.partition_columns),
        key=told.configuration.get(KEY, ""),
        columns=", ".join(pa.schema(table.schema()).names),
    )


def snapshot(folder: Path) -> Snapshot:
    import pyarrow as pa
    from deltalake import DeltaTable

    table = DeltaTable(str(folder))
    return Snapshot(
        files=tuple(table.file_uris()),
        schema=pa.schema(table.schema()),
        partition=tuple(table.metadata().partition_columns),
    )
