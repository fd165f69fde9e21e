"""Questions to the lake: answered from one version of each table, and kept inside the lake."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from headrace.base.errors import BadQuery, HeadraceError, TableMissing
from headrace.stores.lake_sql import ask

AT = datetime(2026, 11, 3, 15, tzinfo=UTC)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tables, and a third outside of the lake."""
    root = tmp_path_factory.mktemp("home")
    rows = {
        "card_id": ["c1", "c1", "c2"],
        "amount": [Decimal("9.50"), Decimal("0.50"), Decimal("7.00")],
        "at": [AT] * 3,
    }
    write_deltalake(str(root / "lake" / "payments"), pa.table(rows), partition_by=["card_id"])
    write_deltalake(str(root / "lake" / "cards"), pa.table({"card_id": ["c1"], "holder": ["Zoë"]}))
    write_deltalake(str(root / "other"), pa.table({"secret": ["s"]}))
    (root / "lake" / "notes.txt").write_text("no table")
    (root / "lake" / "begun" / "_delta_log").mkdir(parents=True)
    return root / "lake"


def answer(lake: Path, sql: str) -> list[dict[str, Any]]:
    return list(ask(lake, sql).rows)


def test_tables_are_asked_by_name(lake: Path) -> None:
    sql = """
        with spent as (select card_id, sum(amount) as spent, max(payments.at) as last from lake.payments group by all)
        select holder, spent, last from spent join lake.cards using (card_id)"""
    assert answer(lake, sql) == [{"holder": "Zoë", "spent": Decimal("10.00"), "last": AT}]


@pytest.mark.parametrize(
    ("sql", "values"),
    [
        ("select count(*) from payments", [3]),  # the lake is where one is
        ("select sum(n) from range(5) as r(n)", [10]),
        ("select 1.5::double, true, null, 2::hugeint", [1.5, True, None, 2]),
        ("select [1, 2], {'a': 1}", [[1, 2], {"a": 1}]),
        ("select 1 as a, 2 as a, 3 as a", [1, 2, 3]),
        ("from cards", ["c1", "Zoë"]),
        ("select max(at) as at from payments where AT > '2026-01-01' and at is not null", [AT]),
        (
            "select at at time zone 'UTC' as t from payments as at where at.at < now() + interval 100 year limit 1",
            [AT.replace(tzinfo=None)],
        ),
        ("select 'at -- at' as c, 1 /* at */ as \"At\" -- at", ["at -- at", 1]),
    ],
)
def test_what_comes_back(lake: Path, sql: str, values: list[Any]) -> None:
    (row,) = answer(lake, sql)
    assert list(row.values()) == values


def test_columns_of_one_name_are_told_apart(lake: Path) -> None:
    assert ask(lake, "select 1 as a, 2 as a, 3 as b").columns == ("a", "a_2", "b")


def test_tables_can_be_described(lake: Path) -> None:
    found = {row["column_name"]: row["column_type"] for row in answer(lake, "describe lake.payments")}
    assert found == {"card_id": "VARCHAR", "amount": "DECIMAL(3,2)", "at": "TIMESTAMP WITH TIME ZONE"}


def test_a_question_sees_one_version_while_others_write(tmp_path: Path) -> None:
    table, enough = str(tmp_path / "t"), threading.Event()
    write_deltalake(table, pa.table({"n": [0]}))

    def write() -> None:
        while not enough.is_set():
            write_deltalake(table, pa.table({"n": [0, 0]}), mode="append")

    writer = threading.Thread(target=write)
    writer.start()
    seen = set()
    try:
        while len(seen) < 3:
            (row,) = answer(tmp_path, "select (select count(*) from t) as one, (select count(*) from lake.t) as other")
            assert row["one"] == row["other"]
            seen.add(row["one"])
    finally:
        enough.set()
        writer.join()
    assert all(count % 2 == 1 for count in seen)


# -- what is no question


@pytest.mark.parametrize(
    ("sql", "shown"),
    [
        ("select 'at", ["unterminated quoted string"]),
        ("selec 1", ['syntax error at or near "selec" [bad-query]', "  in:    selec 1", "         ^^^^^"]),
        (
            "select card_id,\n       amunt\nfrom lake.payments",
            ['Referenced column "amunt" not found', "  in:           amunt", "                ^^^^^"],
        ),
        (
            "select " + "1 + " * 40 + "wrong + " + "1 + " * 40 + "1 from lake.cards",
            ["  in:    select 1", " " * (9 + 7 + 160) + "^^^^^"],
        ),
        ("select cast(card_id as int) from lake.payments", ["Could not convert string 'c", "             ^^^^"]),
    ],
)
def test_an_error_shows_the_place(lake: Path, sql: str, shown: list[str]) -> None:
    with pytest.raises(BadQuery) as caught:
        answer(lake, sql)
    lines = str(caught.value).splitlines()
    assert [one for one in shown if not any(line.startswith(one) or one in line for line in lines)] == [], lines


@pytest.mark.parametrize(
    ("sql", "fix"),
    [
        ("select * from lake.paymnts", "lake.payments?"),
        ("select * from paymnts", "lake.payments?"),
        ("select * from lake.zzz", "there are lake.cards, lake.payments"),
    ],
)
def test_a_table_that_is_not_there_is_named_with_the_nearest(lake: Path, sql: str, fix: str) -> None:
    with pytest.raises(TableMissing) as caught:
        answer(lake, sql)
    assert caught.value.fix == fix


def test_a_lake_that_is_not_there_yet_is_empty(tmp_path: Path) -> None:
    assert answer(tmp_path / "none", "select 1 as one") == [{"one": 1}]
    with pytest.raises(TableMissing, match="no table payments") as caught:
        answer(tmp_path / "none", "select * from lake.payments")
    assert caught.value.why == "it has no tables yet"


@pytest.mark.parametrize(
    "sql",
    [
        "select * from read_csv('/etc/passwd')",
        "select * from READ_TEXT('/etc/passwd')",
        "select * from '/etc/passwd'",
        "select * from lake.'/etc/passwd'",
        "select * from read_parquet('{lake}/payments/**/*.parquet')",
        "select * from delta_scan('{outside}')",
        "select (select count(*) from delta_scan('{outside}')) as n",
        "with x as (select * from delta_scan('http://127.0.0.1:9/t')) select * from x",
        "select * from lake.payments where card_id in (select secret from delta_scan('{outside}'))",
        "select * from delta_set_transaction_version('{lake}/payments', 'app', 1, 2)",
        "select * from query('select 1')",
        "select * from json_execute_serialized_sql(json_serialize_sql('select 1'))",
        "describe select * from read_csv('/etc/passwd')",
        "select * from (summarize select * from read_text('/etc/passwd'))",
        "describe '/etc/passwd'",
        "summarize '/etc/services.csv'",
        "select * from lake.cards as c, lateral (select * from glob('/etc/*')) as g",
        "select * from sniff_csv('/etc/passwd')",
        "select * from duckdb_secrets()",
        "select * from glob('{lake}/**')",
        "select 1; select 2",
        "",
        "create table lake.x (a int)",
        "drop view lake.payments",
        "insert into lake.payments values ('x', 1, now())",
        "delete from lake.payments",
        "copy (select 1) to '{lake}/payments/x.csv'",
        "attach '{outside}' as o (type delta)",
        "install httpfs",
        "load httpfs",
        "set enable_external_access = true",
        "pragma database_list",
        "export database '{lake}/x'",
    ],
)
def test_nothing_but_the_lake_is_read_and_nothing_is_written(lake: Path, sql: str) -> None:
    before = sorted(lake.rglob("*"))
    with pytest.raises((BadQuery, TableMissing)) as caught:
        answer(lake, sql.format(lake=lake, outside=lake.parent / "other"))
    assert isinstance(caught.value, HeadraceError)
    assert sorted(lake.rglob("*")) == before


def test_the_wall_inside_duckdb_holds_by_itself(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a reading function ever gets past the first wall."""
    monkeypatch.setattr("headrace.stores.question.HARMLESS", ("read_csv", "read_text", "delta_scan"))
    for reading in ("read_csv('/etc/passwd')", "read_text('/etc/passwd')", f"delta_scan('{lake.parent / 'other'}')"):
        with pytest.raises(BadQuery, match="disabled by configuration"):
            answer(lake, f"select a.* from {reading} as a, lake.cards")
