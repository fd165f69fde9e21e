"""Rows of a lake table as Arrow: some columns, between two times, from one version."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.base.errors import BadStore, TableMissing
from headrace.stores import lake_tables

if TYPE_CHECKING:
    import pyarrow as pa


def read(
    lake: Path,
    table: str,
    columns: list[str] | None = None,
    *,
    time: str = "",
    since: datetime | None = None,
    until: datetime | None = None,
) -> pa.Table:
    """All rows, or those whose `time` is in [since, until]; files that have none are not opened."""
    import pyarrow.dataset as ds
    from deltalake import DeltaTable

    there = lake_tables.names(lake)
    if table not in there:
        raise TableMissing(
            f"there is no table {table} in the lake",
            why=f"there are {', '.join(there)}" if there else "it has no tables yet",
            fix="`headrace run` of the app that writes it",
        )
    found = DeltaTable(str(lake / table)).to_pyarrow_dataset()
    missing = [name for name in columns or () if name not in found.schema.names]
    if missing:
        raise BadStore(f"lake.{table} has no column {missing[0]}", why=f"it has {', '.join(found.schema.names)}")
    bounds = [ds.field(time) >= since] if since is not None else []
    bounds += [ds.field(time) <= until] if until is not None else []
    return found.to_table(columns=columns, filter=_all(bounds))


def _all(bounds: list[pa.dataset.Expression]) -> pa.dataset.Expression | None:
    chosen = None
    for bound in bounds:
        chosen = bound if chosen is None else chosen & bound
    return chosen
