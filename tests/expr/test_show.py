"""The printer: what it prints parses back to the same tree."""

from __future__ import annotations

from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.expr import parse
from headrace.expr.types import INT, TEXT, Column
from tests.expr.trees import COLUMNS, Trees


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32))
def test_a_printed_tree_parses_back_to_itself(seed: int) -> None:
    tree = Trees(Random(seed)).expr(depth=4)
    assert parse(str(tree), COLUMNS) == tree


def test_names_that_are_words_of_sql_or_odd_are_quoted() -> None:
    for name in ("select", "from", "End", "odd name", 'in"side', "über", "1st", "order", "current_date", "interval"):
        columns = (Column(name, INT),)
        quoted = '"' + name.replace('"', '""') + '"'
        tree = parse(f"{quoted} > 1", columns)
        assert parse(str(tree), columns) == tree


def test_a_column_named_like_a_type_or_a_function_needs_no_quotes_from_the_user() -> None:
    for name in ("timestamp", "date", "time", "hour", "length", "text", "count", "value", "key", "id", "kind"):
        columns = (Column(name, INT),)
        assert str(parse(f"{name} + 1", columns)).replace('"', "") == f"{name} + 1"


def test_parentheses_stand_only_where_they_are_needed() -> None:
    columns = (Column("a", INT), Column("b", INT), Column("t", TEXT))
    for text in (
        "a - b - 1", "a - (b - 1)", "a + b * 2", "(a + b) * 2", "not (a = 1 and b = 2)", "a = 1 or b = 2 and a = 3",
        "(a = 1 or b = 2) and a = 3", "-(a + b)", "-a", "a is not null", "(a > 1) = (b > 1)", "t || 'x' || 'y'",
        "a + 1 between b and b + 2", "case when a = 1 then t else 'no' end",
    ):  # fmt: skip
        assert str(parse(text, columns)) == text
