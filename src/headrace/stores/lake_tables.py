"""What is in the lake: its tables, how large they are, and the files that each is made of now."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from headrace.stores.lake_schema import KEY


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
    """The files of a table at one version, each with the values of its partition, and the columns of all in Spark's
    JSON, which is Delta's too."""

    files: dict[str, tuple[Any, ...]]
    partition: tuple[str, ...]
    schema: str


def names(lake: Path) -> list[str]:
    with suppress(FileNotFoundError):
        return sorted(folder.name for folder in lake.iterdir() if any((folder / "_delta_log").glob("*.json")))
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
    columns = tuple(table.metadata().partition_columns)
    added = pa.table(table.get_add_actions()).to_pylist()
    files = {str(folder / unquote(file["path"])): tuple(file["partition"][name] for name in columns) for file in added}
    return Snapshot(files=files, partition=columns, schema=table.schema().to_json())
