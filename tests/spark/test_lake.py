"""Spark reads a table of the lake as Delta and DuckDB do."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from deltalake.transaction import AddAction

from headrace.base.errors import StoreRefused
from headrace.expr.types import INT, MONEY, TEXT, TIME, Column, list_of
from headrace.model.target import lake
from headrace.spark.lake import read_lake
from headrace.spark.session import Spark
from headrace.stores import lake_sql
from headrace.stores.lake import LakeStore
from headrace.stores.store import Batch

COLUMNS = (
    Column("k", TEXT, nullable=True),
    Column("n", INT),
    Column("spent", MONEY),
    Column("tags", list_of(TEXT)),
    Column("at", TIME),
)
NAMES = ["a", "Zo\u00eb / 50 % = \u2603", "007", "", None]


def test_a_table_with_partitions_of_any_value(spark: Spark, tmp_path: Path) -> None:
    store = LakeStore(tmp_path, lake("pay", partition="k, day(at)"), COLUMNS)
    store.open("bank/v1/pay")
    assert read_lake(spark, tmp_path / "pay").collect() == []
    at = [datetime(2026, 11, 3 + n % 2, 23, 59, 59, 999_999, tzinfo=UTC) for n in range(5)]
    rows = pa.table(
        {
            "k": NAMES,
            "n": range(5),
            "spent": pa.array([Decimal("12.50")] * 5, pa.decimal128(18, 2)),
            "tags": [["x", None]] * 5,
            "at": pa.array(at, pa.timestamp("us", "UTC")),
        }
    )
    for number, place in enumerate((0, 1, 2, 3, 4)):
        pq.write_table(rows.slice(place, 1) if place else rows, tmp_path / "staged.parquet")  # split, then linked
        store.commit(Batch(flow="q", number=number, files=(tmp_path / "staged.parquet",)))

    found = read_lake(spark, tmp_path / "pay")
    asked = lake_sql.ask(tmp_path, 'select * exclude ("at"), epoch_us(pay.at) as at from lake.pay').rows
    seen = found.selectExpr("* except (at)", "unix_micros(at) as at").collect()
    assert sorted((row.asDict() for row in seen), key=repr) == sorted(asked, key=repr)
    assert len(seen) == 9
    assert {row["k"] for row in seen} == {name or None for name in NAMES}  # Delta has no empty text in a partition
    assert found.where("at_day = '2026-11-04'").count() == 4
    assert {row.at_day for row in found.select("at_day").collect()} == {date(2026, 11, 3), date(2026, 11, 4)}


def test_what_spark_writes_becomes_a_file_of_the_table_as_it_is(spark: Spark, tmp_path: Path) -> None:
    store = LakeStore(tmp_path, lake("pay", partition="day(at), k"), COLUMNS)
    store.open("bank/v1/pay")
    rows = spark.session.sql("""
        select 'a' as k, id as n, cast(12.50 as decimal(18, 2)) as spent, array('x') as tags,
        timestamp '2026-11-03 23:59:59.999999' as at from range(3)""")
    rows.coalesce(1).write.parquet(str(tmp_path / "staged"))
    (file,) = (tmp_path / "staged").glob("*.parquet")
    store.commit(Batch(flow="q", number=0, files=(file,)))
    assert file.stat().st_nlink == 2
    told = pa.table(DeltaTable(str(tmp_path / "pay")).get_add_actions(flatten=True)).to_pylist()[0]
    assert (told["num_records"], told["min.n"], told["max.n"]) == (3, 0, 2)
    assert told["max.at"] == datetime(2026, 11, 3, 23, 59, 59, 999_999, tzinfo=UTC)
    (count,) = lake_sql.ask(tmp_path, "select count(*) as n, sum(spent) as s from lake.pay where k = 'a'").rows
    assert count == {"n": 3, "s": Decimal("37.50")}


def test_two_files_of_one_name_are_refused(spark: Spark, tmp_path: Path) -> None:
    adds = []
    for value in ("a", "b"):
        file = tmp_path / "t" / value / "same.parquet"
        file.parent.mkdir(parents=True)
        pq.write_table(pa.table({"n": [1]}), file)
        adds.append(AddAction(f"{value}/same.parquet", file.stat().st_size, {"k": value}, 1, True, "{}"))
    table = DeltaTable.create(str(tmp_path / "t"), pa.schema([("n", pa.int64()), ("k", pa.string())]), partition_by="k")
    table.create_write_transaction(adds, "append", table.schema(), ["k"])
    with pytest.raises(StoreRefused, match="two files of the table have one name"):
        read_lake(spark, tmp_path / "t")
