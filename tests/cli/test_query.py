"""`headrace query`: the lake's tables and answers, as a table, JSON or CSV."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tests.cli.conftest import Headrace

AT = datetime(2026, 11, 3, 15, tzinfo=UTC)


@pytest.fixture
def asked(headrace: Headrace, tmp_path: Path) -> Headrace:
    rows = {
        "card_id": ["c1", "c2"],
        "amount": [Decimal("9.50"), None],
        "times": [1_000, 2],
        "at": [AT, AT],
        "on": [True, None],
    }
    write_deltalake(str(tmp_path / "lake" / "payments"), pa.table(rows))
    write_deltalake(str(tmp_path / "lake" / "many"), pa.table({"n": range(250)}))
    return lambda *arguments, **options: headrace(
        "--set", f"lake.path={tmp_path / 'lake'}", "query", *arguments, **options
    )


def test_an_answer_is_a_table_with_its_own_names_and_numbers(asked: Headrace) -> None:
    said = asked("select card_id, times, amount / 3 as third from lake.payments order by card_id")
    assert said.out.splitlines() == [
        "card_id  times               third",
        "c1        1000  3.1666666666666665",
        "c2           2                   -",
    ]


def test_an_answer_is_json(asked: Headrace) -> None:
    said = asked("select *, interval 1 day as i from lake.payments order by card_id", "--json")
    first, second = said.json
    assert first | {"i": ""} == {
        "card_id": "c1", "amount": "9.50", "times": 1000, "at": "2026-11-03T15:00:00.000000Z", "on": True, "i": "",
    }  # fmt: skip
    assert second["amount"] is None
    assert isinstance(first["i"], str)


def test_an_answer_is_csv(asked: Headrace) -> None:
    said = asked("select card_id, amount, payments.on, ['a', 'b'] as l from lake.payments order by card_id", "--csv")
    assert said.out.splitlines() == ["card_id,amount,on,l", 'c1,9.50,true,"[""a"",""b""]"', 'c2,,,"[""a"",""b""]"']


def test_a_terminal_shows_the_first_rows_and_says_so(asked: Headrace) -> None:
    said = asked("from many")
    assert len(said.out.splitlines()) == 101
    assert said.err == "only the first 100 rows; --limit 0 shows all\n"
    assert len(asked("from many", "--limit", "0").out.splitlines()) == 251
    assert len(asked("from many", "--json").json) == 250
    assert len(asked("from many", "--csv", "--limit", "3").out.splitlines()) == 4


def test_without_a_question_the_tables_are_listed(asked: Headrace) -> None:
    many, payments = asked("--json").json
    assert (many["table"], many["rows"], many["files"]) == ("lake.many", 250, 1)
    assert payments["columns"] == "card_id, amount, times, at, on"
    assert "lake.payments" in asked().out


def test_an_empty_lake_and_an_empty_answer_are_told(headrace: Headrace, asked: Headrace, tmp_path: Path) -> None:
    assert asked("from many where n < 0").err == "no rows\n"
    said = headrace("--set", f"lake.path={tmp_path / 'none'}", "query")
    assert (said.code, said.out) == (0, "")
    assert "the lake has no tables yet" in said.err


def test_errors_have_their_codes(asked: Headrace) -> None:
    said = asked("select amunt from lake.payments")
    assert (said.code, said.out) == (2, "")
    assert said.err.splitlines()[1:3] == ["  in:    select amunt from lake.payments", "                ^^^^^"]
    said = asked("from lake.paymnts", "--json")
    assert (said.code, msgspec.json.decode(said.err)["code"]) == (1, "table-missing")
    assert asked("select 1", "--json", "--csv").code == 2
    assert asked("select * from read_csv('/etc/passwd')").code == 2
