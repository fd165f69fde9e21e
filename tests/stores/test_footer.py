"""Footers of Parquet files: bounds over all groups of rows, and only where every group tells."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.stores import footer
from headrace.stores.footer import Bounds

AT = [datetime(year, 1, 1, tzinfo=UTC) for year in (2026, 1, 9999)]
ROWS = {
    "n": [5, None, 7, -1],
    "text": ["b", "a", "", "ß"],
    "long": ["x", "y", "z" * 65, "y"],
    "at": [*AT, None],
    "spent": [Decimal("1.10")] * 4,
    "ratio": [0.1, 0.2, 0.3, float("nan")],
    "on": [True, False, True, None],
    "list": [[1], [2], [], None],
    "none": pa.array([None] * 4, pa.int64()),
}


def written(folder: Path, rows: dict[str, Any], **options: Any) -> pq.FileMetaData:
    pq.write_table(pa.table(rows), folder / "f.parquet", **options)
    return pq.read_metadata(folder / "f.parquet")


@pytest.mark.parametrize("size", [1, 3, 100])
def test_bounds_span_all_groups_of_rows(tmp_path: Path, size: int) -> None:
    given = {"n": [5, 2, 7, -1], "text": ["b", "a", "", "ß"]}
    found = footer.bounds(written(tmp_path, given, row_group_size=size))
    assert found == {"n": Bounds(least=-1, greatest=7, nulls=0), "text": Bounds(least="", greatest="ß", nulls=0)}


def test_a_group_that_tells_nothing_hides_the_column(tmp_path: Path) -> None:
    assert footer.bounds(written(tmp_path, {"n": [1, None]}, row_group_size=1)) == {}
    assert footer.bounds(written(tmp_path, {"n": [1]}, write_statistics=False)) == {}
    assert footer.bounds(written(tmp_path, {"n": pa.array([], pa.int64())})) == {}


def test_the_log_is_told_what_json_can_say_exactly(tmp_path: Path) -> None:
    told = footer.statistics(written(tmp_path, ROWS), set(ROWS) - {"text"})
    assert told == {
        "numRecords": 4,
        "minValues": {"n": -1, "at": "0001-01-01T00:00:00.000000Z"},
        "maxValues": {"n": 7, "at": "9999-01-01T00:00:00.000000Z"},
        "nullCount": {"n": 1, "at": 1},
    }
