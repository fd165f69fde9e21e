"""Staged rows: what the tasks of a batch left for a store, a Parquet file each, on their way there.

A file holds the row's columns as Spark writes them, then those that its target has as `extra`: `_gone` (true: the key
was deleted, and only its columns are set), `_time` (event time, microseconds since 1970), `_id` (the row's stable id).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.base.errors import StoreKeyMissing
from headrace.expr.types import Columns
from headrace.model.target import EVENT_TIME, Target

_PLACE = "_place"


def read(files: Sequence[Path], target: Target, columns: Columns) -> pa.Table:
    """All rows, in the order of the files, then of the rows in them."""
    return pa.concat_tables(_read(file, target, columns) for file in files)


def latest(files: Sequence[Path], target: Target, columns: Columns) -> pa.Table:
    """Of several rows with one key the last.

    In one file that is the last by place: rows of a key follow the order of their causes (rule D4), so that the result
    does not depend on where batches were cut. Between files, which have no order, event time decides.
    """
    rows = pa.concat_tables(_last(_read(file, target, columns), target) for file in files)
    return _last(rows.sort_by(EVENT_TIME), target) if len(files) > 1 else rows


def _read(file: Path, target: Target, columns: Columns) -> pa.Table:
    names = [column.name for column in columns] + list(target.extra)
    return pq.ParquetFile(file).read(columns=names).select(names)  # not read_table: it would look for partitions


def _last(rows: pa.Table, target: Target) -> pa.Table:
    for name in target.key:
        if missing := rows[name].null_count:
            raise StoreKeyMissing(
                f"{missing} of {len(rows)} rows for {target.label} have no {name}",
                why="it is part of the key, and was declared as never null",
                fix="a fault of Headrace: nothing of the batch was written; please report it",
            )
    keys = rows.select(target.key).append_column(_PLACE, pa.arange(0, len(rows)))
    last = keys.group_by(list(target.key)).aggregate([(_PLACE, "max")])
    return rows if len(last) == len(rows) else rows.take(last[f"{_PLACE}_max"].sort())
