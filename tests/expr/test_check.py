"""Types of expressions: the one result-type table, what widens by itself, what may be null."""

from __future__ import annotations

import pytest

from headrace.base.errors import ExpressionType
from headrace.expr import parse
from headrace.expr.nodes import Call, Cast, Literal, Ref
from headrace.expr.types import BOOL, FLOAT, INT, MONEY, TEXT, TIME, Column, decimal, list_of

COLUMNS = (
    Column("m", MONEY),
    Column("d", decimal(38, 10)),
    Column("i", INT),
    Column("maybe", INT, nullable=True),
    Column("f", FLOAT),
    Column("t", TEXT),
    Column("at", TIME),
    Column("ok", BOOL),
    Column("tags", list_of(TEXT)),
)


@pytest.mark.parametrize(
    ("text", "type"),
    [
        ("i + i", "int"),
        ("i / i", "float"),
        ("i % 2", "int"),
        ("i * f", "float"),
        ("m * f", "float"),
        ("m + m", "decimal(19, 2)"),
        ("m + 1", "decimal(19, 2)"),
        ("m + i", "decimal(22, 2)"),
        ("m * 2", "decimal(20, 2)"),
        ("m * 0.07", "decimal(21, 4)"),
        ("m * i", "decimal(38, 2)"),
        ("m / 3", "decimal(22, 6)"),
        ("m / i", "decimal(38, 22)"),
        ("m % 3", "money"),
        ("d + d", "decimal(38, 9)"),
        ("d * d", "decimal(38, 6)"),
        ("-m", "money"),
        ("round(m * 0.07, 2)", "decimal(20, 2)"),
        ("floor(m)", "decimal(17, 0)"),
        ("floor(f)", "int"),
        ("coalesce(m, 0)", "money"),
        ("greatest(i, m)", "decimal(21, 2)"),
        ("case when ok then 1 else 2.5 end", "decimal(2, 1)"),
        ("case when ok then null else i end", "int"),
        ("cast(t as decimal(5, 1))", "decimal(5, 1)"),
        ("cast(m as money)", "money"),
        ("at + interval '1 h'", "time"),
        ("at - at > interval '1 h'", "bool"),
        ("seconds_between(at, at)", "float"),
        ("tags", "list of text"),
        ("tags is null", "bool"),
        ("12345678901234567890 > i", "bool"),
    ],
)
def test_result_types(text: str, type: str) -> None:
    assert str(parse(text, COLUMNS).type) == type


@pytest.mark.parametrize(
    ("text", "nullable"),
    [
        ("i + 1", False),
        ("maybe + 1", True),
        ("i / 2", False),
        ("m / 2.5", False),
        ("i % 2", False),
        ("i / 0", True),
        ("i / f", True),
        ("i % cast(0.4 as int)", True),
        ("maybe is null", False),
        ("maybe is distinct from 1", False),
        ("coalesce(maybe, i)", False),
        ("coalesce(maybe, maybe)", True),
        ("greatest(maybe, i)", False),
        ("case when ok then 1 end", True),
        ("case when ok then 1 else 2 end", False),
        ("try_cast(t as int)", True),
        ("cast(t as int)", False),
        ("nullif(i, 1)", True),
        ("sqrt(f)", True),
        ("i in (1, null)", True),
    ],
)
def test_what_may_be_null(text: str, nullable: bool) -> None:
    assert parse(text, COLUMNS).nullable is nullable


def test_conversions_that_happen_by_themselves_are_in_the_tree_and_not_in_the_text() -> None:
    tree = parse("m > i", COLUMNS)
    assert isinstance(tree, Call)
    assert [isinstance(arg, Cast) and arg.implicit for arg in tree.args] == [True, True]
    assert str(tree) == "m > i"


def test_lists_and_bytes_have_no_order() -> None:
    with pytest.raises(ExpressionType, match="has no order"):
        parse("tags > tags", COLUMNS)


def test_an_ill_typed_tree_cannot_be_made() -> None:
    i = Ref(name="i", type=INT, nullable=False)
    with pytest.raises(TypeError, match="takes decimal"):
        Call(op="+", args=(i, Ref(name="m", type=MONEY, nullable=False)))
    with pytest.raises(TypeError, match="is not int"):
        Literal(value="1", type=INT)
    with pytest.raises(TypeError, match="does not become"):
        Cast(arg=Ref(name="at", type=TIME, nullable=False), type=FLOAT)


def test_the_columns_it_reads() -> None:
    assert [ref.name for ref in parse("m > 1 and i > 2 and m < 5", COLUMNS).refs()] == ["m", "i"]


def test_functions_that_engines_compute_a_little_differently_are_marked() -> None:
    assert parse("ln(f) > 1", COLUMNS).approximate
    assert not parse("sqrt(f) > 1", COLUMNS).approximate
