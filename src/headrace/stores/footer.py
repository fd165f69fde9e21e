"""What the footer of a Parquet file says of its columns, without a look at the rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from headrace.base.clock import rfc3339

if TYPE_CHECKING:
    import pyarrow.parquet as pq

LONGEST = 64
"""Characters of a text that a table's log keeps as a bound; longer ones would only fill it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The least and the greatest value of a column, and how many are null."""

    least: Any
    greatest: Any
    nulls: int


def bounds(metadata: pq.FileMetaData) -> dict[str, Bounds]:
    """Those columns whose bounds are known in every group of rows."""
    found: dict[str, list[Bounds | None]] = {}
    for group in range(metadata.num_row_groups):
        rows = metadata.row_group(group)
        for index in range(rows.num_columns):
            chunk = rows.column(index)
            one, known = chunk.statistics, None
            if one is not None and one.has_min_max and one.has_null_count:
                known = Bounds(least=one.min, greatest=one.max, nulls=one.null_count)
            found.setdefault(chunk.path_in_schema, []).append(known)
    return {name: _all([one for one in each if one]) for name, each in found.items() if all(each)}


def statistics(metadata: pq.FileMetaData, columns: Collection[str]) -> dict[str, Any]:
    """In the words of Delta's log, what lets a reader pass over a file: how many rows it has, and the bounds of whole
    numbers, times and short texts; other types have no exact form in JSON."""
    known = {name: one for name, one in bounds(metadata).items() if name in columns and _plain(one)}
    return {
        "numRecords": metadata.num_rows,
        "minValues": {name: _json(one.least) for name, one in known.items()},
        "maxValues": {name: _json(one.greatest) for name, one in known.items()},
        "nullCount": {name: one.nulls for name, one in known.items()},
    }


def _all(groups: Sequence[Bounds]) -> Bounds:
    return Bounds(
        least=min(group.least for group in groups),
        greatest=max(group.greatest for group in groups),
        nulls=sum(group.nulls for group in groups),
    )


def _plain(bounds: Bounds) -> bool:
    value = bounds.greatest
    if isinstance(value, str):
        return len(bounds.least) <= LONGEST and len(value) <= LONGEST
    return isinstance(value, int | datetime) and not isinstance(value, bool)


def _json(value: Any) -> Any:
    return rfc3339(value) if isinstance(value, datetime) else value
