"""`hr.col`: every operator and method builds the tree that the SQL text makes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from headrace.base.errors import ExpressionRefused
from headrace.expr import expression, parse
from headrace.expr.build import Col, call, col, when
from headrace.expr.functions import FUNCTIONS
from headrace.expr.types import BOOL, FLOAT, INT, MONEY, TEXT, TIME, Column, decimal

COLUMNS = (
    Column("amount", MONEY),
    Column("country", TEXT),
    Column("n", INT),
    Column("x", FLOAT),
    Column("ok", BOOL),
    Column("at", TIME),
    Column("odd name", INT),
)
NAMES = {"buy": COLUMNS}
NOON = datetime(2026, 11, 3, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("built", "text"),
    [
        (col.amount > 100, "amount > 100"),
        (col.amount * 0.07 >= Decimal("1.50"), "amount * 0.07 >= 1.50"),
        (col.x > 1e300, "x > 1e300"),
        ((col.n == 1) & ~col.ok | (col.n != 2), "n = 1 and not ok or n <> 2"),
        (True & col.ok, "true and ok"),
        (1 + col.n - 2 * (3 - col.n), "1 + n - 2 * (3 - n)"),
        (1 / col.n + col.n / 2 + 7 % col.n + col.n % 7, "1 / n + n / 2 + 7 % n + n % 7"),
        (-col.n, "-n"),
        (abs(col.n), "abs(n)"),
        (round(col.amount, 1), "round(amount, 1)"),
        (col.n.is_null() | col.n.is_not_null(), "n is null or n is not null"),
        (col.n.is_distinct_from(1), "n is distinct from 1"),
        (col.country.in_("CH", "DE"), "country in ('CH', 'DE')"),
        (col.n.between(1, 2), "n between 1 and 2"),
        (col.country.like("C%"), "country like 'C%'"),
        (col.country.lower().trim().upper().concat("x"), "upper(trim(lower(country))) || 'x'"),
        (col.country.substr(1, 2).replace("a", "b"), "replace(substr(country, 1, 2), 'a', 'b')"),
        (col.country.starts_with("a"), "starts_with(country, 'a')"),
        (col.country.ends_with("b"), "ends_with(country, 'b')"),
        (col.country.contains("a") | (col.country.length() > 2), "contains(country, 'a') or length(country) > 2"),
        (col.at.extract("hour"), "extract(hour from at)"),
        (col.at.date_trunc("day"), "date_trunc('day', at)"),
        (col.at + timedelta(minutes=5) > NOON, "at + interval '5 min' > timestamp '2026-11-03T12:00:00Z'"),
        (col.n.cast("float"), "cast(n as float)"),
        (col.country.try_cast(decimal(5, 2)), "try_cast(country as decimal(5, 2))"),
        (when(col.ok, 1, 2), "case when ok then 1 else 2 end"),
        (when(col.ok, col.n), "case when ok then n end"),
        (call("greatest", col.n, 5), "greatest(n, 5)"),
        (col.buy.country == col.country, "buy.country = country"),
        (col["odd name"] + 1, '"odd name" + 1'),
    ],
)  # fmt: skip
def test_python_builds_the_tree_of_the_text(built: Col, text: str) -> None:
    assert expression(built, COLUMNS, names=NAMES) == parse(text, COLUMNS, names=NAMES)


def test_an_expression_has_no_truth_value() -> None:
    with pytest.raises(ExpressionRefused, match="truth value") as caught:
        bool(col.n > 1 and col.ok)
    assert "test_build.py:" in str(caught.value)


def test_a_chained_comparison_is_caught() -> None:
    with pytest.raises(ExpressionRefused, match="truth value"):
        1 < col.n < 5  # noqa: B015


def test_what_cannot_stand_in_an_expression() -> None:
    with pytest.raises(ExpressionRefused, match="cannot stand"):
        col.n > object()  # noqa: B015
    with pytest.raises(ExpressionRefused, match="needs a value"):
        col.n.in_()
    with pytest.raises(ExpressionRefused, match="not allowed"):
        call("reflect", col.n)
    with pytest.raises(ExpressionRefused, match="no type"):
        col.n.cast("blob")
    with pytest.raises(AttributeError):
        (col.n + 1).nothing  # noqa: B018


def test_every_function_can_be_called_by_its_name() -> None:
    assert all(isinstance(call(op, col.n), Col) for op in FUNCTIONS)


def test_it_shows_itself() -> None:
    assert repr(col.n + 1 > 2) == "<col n + 1 > 2>"
