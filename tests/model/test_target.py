"""Stores as declared: what can name them, what can be their key, and whose line an error shows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from headrace.base.errors import BadCall, BadDuration, BadStore
from headrace.expr.types import INT, TEXT, TIME, Column, list_of
from headrace.model.target import Part, Target, files, lake, postgres, redis

COLUMNS = (
    Column("card_id", TEXT),
    Column("at", TIME),
    Column("n", INT),
    Column("city", TEXT, nullable=True),
    Column("tags", list_of(TEXT)),
)


def test_a_target_knows_its_name_its_key_and_its_label() -> None:
    assert (postgres("card_spend", key="card_id,at").key, postgres("sales.log").key) == (("card_id", "at"), ())
    assert postgres("sales.log").label == "postgres:sales.log"
    assert redis("spend:{card_id}:{at}").key == ("card_id", "at")
    assert redis("spend:{card_id}", ttl="30 d").ttl == timedelta(days=30)
    assert redis("spend:{card_id}").prefix == "spend:"
    assert redis("spend:{card_id}").label == "redis:spend:{card_id}"
    assert lake("pay", partition="card_id, day(at)").partition == (
        Part(column="card_id"),
        Part(column="at", unit="day"),
    )
    assert (lake("pay").label, files("pay").label) == ("lake:pay", "files:pay")


def test_a_target_says_which_columns_its_staged_rows_have_beside_their_own() -> None:
    assert postgres("t", key="a").extra == redis("x:{a}").extra == lake("t", key="a").extra == ("_gone", "_time")
    assert postgres("t").extra == files("t").extra == ("_id",)
    assert lake("t").extra == ()


def test_targets_are_equal_by_what_they_say_not_by_where() -> None:
    one = postgres("card_spend", key="card_id")
    assert one == postgres("card_spend", key="card_id")
    assert one.where is not None
    assert "test_target.py:" in str(one.where)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: postgres("Card Spend"), "cannot name a table"),
        (lambda: postgres("a.b.c"), "cannot name a table"),
        (lambda: postgres("headrace_ledger"), "cannot name a table"),
        (lambda: postgres("x" * 64), "cannot name a table"),
        (lambda: postgres("t", key=""), "is no key"),
        (lambda: postgres("t", key="a, a"), "is no key"),
        (lambda: postgres("t", key="upper(a)"), "is no key"),
        (lambda: redis("spend"), "is no pattern"),
        (lambda: redis("spend:{}"), "is no pattern"),
        (lambda: redis("spend:{a}}"), "is no pattern"),
        (lambda: redis("{a}"), "no word of its own"),
        (lambda: redis("headrace_x:{a}"), "no word of its own"),
        (lambda: redis("x{a}"), "no word of its own"),
        (lambda: redis("x:{a}{b}"), "two columns side by side"),
        (lambda: redis("x:{a}", ttl="0 s"), "for 0 s"),
        (lambda: redis("x:{a}", ttl="-1 h"), "for -1 h"),
        (lambda: lake("../etc"), "cannot name a table"),
        (lambda: lake("pay", partition="week(at)"), "is no partition"),
        (lambda: files("a/b"), "cannot name a table"),
    ],
)
def test_what_cannot_be_is_refused_at_the_users_line(make: Callable[[], Target], said: str) -> None:
    with pytest.raises(BadStore, match=said) as refused:
        make()
    assert "test_target.py:" in str(refused.value)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (postgres("t", key="card"), "the rows have no such column"),
        (redis("x:{city}"), "city may be null"),
        (postgres("t", key="tags"), "tags is a list"),
        (lake("t", partition="day(n)"), "which is int"),
        (lake("t", partition="day(on)"), "the rows have no such column"),
        (lake("t", partition="day(at)", key="card_id"), "not in its key"),
        (lake("t", partition="card_id", key="card_id"), "partitioned by the text card_id"),
    ],
)
def test_rows_that_do_not_fit_are_refused(target: Target, said: str) -> None:
    with pytest.raises(BadStore, match=said):
        target.check(COLUMNS, None)


def test_rows_that_fit_pass() -> None:
    for target in (postgres("t", key="card_id, at"), redis("x:{n}"), lake("t", partition="day(at)"), files("t")):
        target.check(COLUMNS, None)


def test_a_lake_keeps_parts_of_times_in_columns_of_their_own() -> None:
    assert [part.name for part in lake("t", partition="card_id, hour(at)").partition] == ["card_id", "at_hour"]
    with pytest.raises(BadStore, match="the rows have a column at_day"):
        lake("t", partition="day(at)").check((*COLUMNS, Column("at_day", TEXT)), None)


def test_a_name_that_postgresql_would_cut_is_refused() -> None:
    columns = (Column("x" * 63, INT), Column("é" * 32, INT))
    postgres("t").check(columns[:1], None)
    lake("t").check(columns, None)
    with pytest.raises(BadStore, match="too long a name for postgres:t"):
        postgres("t").check(columns, None)


def test_names_of_our_own_columns_are_taken() -> None:
    with pytest.raises(BadStore, match="'_time' cannot go to files:t"):
        files("t").check((Column("_time", INT),), None)


def test_mistakes_in_the_call_show_an_example() -> None:
    with pytest.raises(BadCall, match="keys"):
        postgres("t", keys="a")  # type: ignore[call-arg]
    with pytest.raises(BadDuration) as refused:
        redis("x:{a}", ttl="soon")
    assert "test_target.py:" in str(refused.value)
