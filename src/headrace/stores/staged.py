"""Staged rows: what the tasks of a batch left for a store, in Parquet files on their way there.

A file holds the row's columns as Spark writes them, then `_gone` (true: the row's key was deleted, and only the key's
columns are set), `_time` (event time, microseconds since 1970) and `_id` (the row's stable id).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.base.errors import StoreKeyMissing
from headrace.expr.types import Columns

if TYPE_CHECKING:
    import pyarrow as pa

_PLACE = "_place"


def read(files: Sequence[Path], columns: Columns) -> pa.Table:
    """All rows, in the order of the files, then of the rows in them; only these columns and the three beside them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [column.name for column in columns] + ["_gone", "_time", "_id"]
    # Each file by itself: a dataset would read them in any order, and might find partitions in their paths.
    return pa.concat_tables(pq.ParquetFile(file).read(columns=names).select(names) for file in files)


def latest(rows: pa.Table, key: Sequence[str], label: str) -> pa.Table:
    """Of several rows with one key the last, by event time, then by place."""
    import pyarrow as pa

    for name in key:
        if missing := rows[name].null_count:
            raise StoreKeyMissing(
                f"{missing} of {len(rows)} rows for {label} have no {name}",
                why="it is part of the key, and was declared as never null",
                fix="a fault of Headrace: nothing of the batch was written; please report it",
            )
    ordered = rows.append_column(_PLACE, pa.arange(0, len(rows)))
    ordered = ordered.sort_by([("_time", "ascending"), (_PLACE, "ascending")]).drop_columns(_PLACE)
    last = ordered.append_column(_PLACE, pa.arange(0, len(rows)))
    last = last.select([*key, _PLACE]).group_by(list(key)).aggregate([(_PLACE, "max")])
    return ordered if len(last) == len(rows) else ordered.take(last[f"{_PLACE}_max"].sort())
