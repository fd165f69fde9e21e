"""The way in: text, `hr.col` trees, select lists and column lists."""

from __future__ import annotations

import pytest

from headrace.base.errors import ExpressionRefused, ExpressionType, UnknownColumn
from headrace.base.where import here
from headrace.expr import column_list, expression, select_list
from headrace.expr.build import col
from headrace.expr.types import INT, MONEY, TEXT, Column

COLUMNS = (Column("card_id", TEXT), Column("amount", MONEY), Column("n", INT))


def test_text_and_python_make_the_same_tree() -> None:
    assert expression(col.amount > 100, COLUMNS) == expression("amount > 100", COLUMNS)


def test_an_error_points_at_the_users_line() -> None:
    with pytest.raises(UnknownColumn) as caught:
        expression("amuont > 100", COLUMNS, where=here())
    assert "test_typed.py:" in str(caught.value)
    assert "         ^^^^^^" in str(caught.value).splitlines()


def test_an_error_in_a_python_tree_shows_it_as_text() -> None:
    with pytest.raises(ExpressionType) as caught:
        expression(col.card_id + 1 > 5, COLUMNS)
    assert "  in:    card_id + 1 > 5" in str(caught.value).splitlines()


def test_something_else_is_refused() -> None:
    with pytest.raises(ExpressionRefused, match="is not an expression"):
        expression(5, COLUMNS)  # type: ignore[arg-type]


def test_a_select_list_names_its_columns() -> None:
    found = select_list("card_id, amount * 2 as doubled, n as times", COLUMNS)
    assert [(name, str(expr)) for name, expr in found] == [
        ("card_id", "card_id"),
        ("doubled", "amount * 2"),
        ("times", "n"),
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("amount * 2", "has no name"),
        ("n, amount as n", "two columns are named 'n'"),
        ("n,", "nothing follows the comma"),
        ("*, n", "two columns are named 'n'"),
        ("* except (n)", r"\* is not allowed"),
        ("distinct n", "only expressions are allowed"),
        ("n from t", "only expressions are allowed"),
    ],
)
def test_a_select_list_that_is_none(text: str, why: str) -> None:
    with pytest.raises(ExpressionRefused, match=why):
        select_list(text, COLUMNS)


def test_a_star_is_every_column() -> None:
    found = select_list("*, amount * 2 as doubled", COLUMNS)
    assert [name for name, _ in found] == ["card_id", "amount", "n", "doubled"]
    with pytest.raises(ExpressionRefused, match=r"\* is not an expression"):
        expression("*", COLUMNS)


def test_a_list_of_names_is_one_text() -> None:
    with pytest.raises(ExpressionRefused) as caught:
        select_list(["card_id", "n"], COLUMNS)  # type: ignore[arg-type]
    assert caught.value.fix == 'write "card_id, n"'


def test_a_column_wins_over_a_function_of_its_name() -> None:
    columns = (Column("user", TEXT), Column("current_date", TEXT))
    for text in ("user = 'ann'", "current_date = '2026-11-03'"):
        assert str(expression(str(expression(text, columns)), columns)) == str(expression(text, columns))
    with pytest.raises(ExpressionRefused, match="user is not allowed"):
        expression("user = 'ann'", COLUMNS)


def test_a_column_list() -> None:
    assert column_list("card_id, n", COLUMNS) == ("card_id", "n")
    for text in ("n + 1", "n, n", "n as m"):
        with pytest.raises(ExpressionRefused):
            column_list(text, COLUMNS)
