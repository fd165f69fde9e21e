"""Staged rows: read in order, the last of a key, and never without their key."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.base.errors import StoreKeyMissing
from headrace.expr.types import INT, TEXT, Column
from headrace.model.target import postgres
from headrace.stores import staged

COLUMNS = (Column("k", TEXT), Column("n", INT))
Write = Callable[[list[tuple[str | None, int, int]]], Path]
BY_KEY = postgres("t", key="k")


@pytest.fixture
def file(tmp_path: Path) -> Write:
    def write(rows: list[tuple[str | None, int, int]]) -> Path:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.parquet"
        table = pa.table(
            {
                "n": [n for _, n, _ in rows],
                "k": pa.array([k for k, _, _ in rows], pa.string()),
                "_gone": [False] * len(rows),
                "_time": [time for _, _, time in rows],
                "_id": [str(n) for _, n, _ in rows],
            }
        )
        pq.write_table(table, path)
        return path

    return write


def test_rows_come_in_the_order_of_the_files(file: Write) -> None:
    found = staged.read([file([("b", 1, 9), ("a", 2, 1)]), file([("c", 3, 5)])], postgres("t"), COLUMNS)
    assert found.to_pylist() == [
        {"k": "b", "n": 1, "_id": "1"},
        {"k": "a", "n": 2, "_id": "2"},
        {"k": "c", "n": 3, "_id": "3"},
    ]


def test_in_one_file_the_last_place_wins_whatever_its_time(file: Write) -> None:
    found = staged.latest([file([("a", 1, 9), ("b", 2, 9), ("a", 3, 1)])], BY_KEY, COLUMNS)
    assert found["n"].to_pylist() == [2, 3]


def test_between_files_the_latest_event_wins_and_of_equal_times_the_later_file(file: Write) -> None:
    one, other = file([("a", 1, 20), ("a", 2, 10), ("b", 3, 5)]), file([("a", 4, 15), ("b", 5, 5)])
    assert sorted(staged.latest([one, other], BY_KEY, COLUMNS)["n"].to_pylist()) == [4, 5]
    assert sorted(staged.latest([other, one], BY_KEY, COLUMNS)["n"].to_pylist()) == [3, 4]


def test_a_row_without_its_key_is_refused(file: Write) -> None:
    with pytest.raises(StoreKeyMissing, match="1 of 2 rows for postgres:t have no k"):
        staged.latest([file([("a", 1, 1), (None, 2, 2)])], BY_KEY, COLUMNS)
