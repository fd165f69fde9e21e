"""Expressions in Python: SQL's nulls, exact numbers, and errors instead of wraps."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest

from headrace.base.errors import DoesNotFit
from headrace.expr import by_attribute, by_index, compile, parse
from headrace.expr.types import BOOL, FLOAT, INT, MONEY, TEXT, TIME, Column, decimal

COLUMNS = (
    Column("m", MONEY, nullable=True),
    Column("i", INT, nullable=True),
    Column("f", FLOAT, nullable=True),
    Column("t", TEXT, nullable=True),
    Column("at", TIME, nullable=True),
    Column("a", BOOL, nullable=True),
    Column("b", BOOL, nullable=True),
    Column("d", decimal(38, 0), nullable=True),
)
NOON = datetime(2026, 11, 3, 12, 34, 56, 789_012, tzinfo=UTC)


def value(text: str, **row: Any) -> Any:
    return compile(parse(text, COLUMNS))({column.name: row.get(column.name) for column in COLUMNS})


@pytest.mark.parametrize(
    ("a", "b", "both", "either"),
    [
        (True, True, True, True), (True, False, False, True), (True, None, None, True),
        (False, True, False, True), (False, False, False, False), (False, None, False, None),
        (None, True, None, True), (None, False, False, None), (None, None, None, None),
    ],
)  # fmt: skip
def test_logic_with_nulls(a: bool | None, b: bool | None, both: bool | None, either: bool | None) -> None:
    assert value("a and b", a=a, b=b) is both
    assert value("a or b", a=a, b=b) is either
    assert value("not a", a=a) is (None if a is None else not a)


@pytest.mark.parametrize(
    ("text", "row", "expected"),
    [
        ("i = 1", {}, None),
        ("i is null", {}, True),
        ("i is distinct from 1", {}, True),
        ("i in (1, 2)", {"i": 2}, True),
        ("i in (1, null)", {"i": 2}, None),
        ("i not in (1, null)", {"i": 1}, False),
        ("i between 1 and 3", {"i": 3}, True),
        ("i between 5 and nullif(1, 1)", {"i": 3}, False),
        ("coalesce(i, 7)", {}, 7),
        ("nullif(i, 7)", {"i": 7}, None),
        ("greatest(i, 3)", {}, 3),
        ("case when a then 1 when b then 2 end", {"b": True}, 2),
        ("case when a then 1 end", {}, None),
    ],
)
def test_nulls(text: str, row: dict[str, Any], expected: object) -> None:
    assert value(text, **row) == expected


@pytest.mark.parametrize(
    ("text", "row", "expected"),
    [
        ("i / 2", {"i": 1}, 0.5),
        ("i / 0", {"i": 1}, None),
        ("f / 0", {"f": 1.0}, None),
        ("m / 0", {"m": Decimal("1.00")}, None),
        ("i % 3", {"i": -7}, -1),
        ("f % 3", {"f": -7.5}, -1.5),
        ("m % 3", {"m": Decimal("-7.50")}, Decimal("-1.50")),
        ("m / 3", {"m": Decimal("1.00")}, Decimal("0.333333")),
        ("m / -3", {"m": Decimal("2.00")}, Decimal("-0.666667")),
        ("m * 0.075", {"m": Decimal("0.20")}, Decimal("0.01500")),
        ("round(m, 1)", {"m": Decimal("0.25")}, Decimal("0.3")),
        ("round(m, 1)", {"m": Decimal("-0.25")}, Decimal("-0.3")),
        ("round(f)", {"f": 2.5}, 3.0),
        ("round(f)", {"f": -2.5}, -3.0),
        ("round(f)", {"f": 0.49999999999999994}, 0.0),
        ("floor(f)", {"f": -0.5}, -1),
        ("ceil(m)", {"m": Decimal("9.01")}, Decimal(10)),
        ("cast(f as money)", {"f": 12.345}, Decimal("12.35")),
        ("cast(m as int)", {"m": Decimal("-9.99")}, -9),
        ("sqrt(f)", {"f": -1.0}, None),
        ("ln(f)", {"f": 0.0}, None),
        ("power(f, 0.5)", {"f": -8.0}, None),
        ("i > 9007199254740992.5e0", {"i": 2**53 + 1}, False),  # an int beside a float is compared as a float
        ("m > 0.1", {"m": Decimal("0.10")}, False),
        ("d = 99999999999999999999999999999999999999", {"d": Decimal(10**38 - 1)}, True),
        ("-d", {"d": Decimal(10**38 - 1)}, Decimal(1 - 10**38)),
    ],
)
def test_numbers(text: str, row: dict[str, Any], expected: object) -> None:
    assert value(text, **row) == expected


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("i + 1", {"i": 2**63 - 1}),
        ("-i", {"i": -(2**63)}),
        ("abs(i)", {"i": -(2**63)}),
        ("i * i", {"i": 2**40}),
        ("f * 10", {"f": 1e308}),
        ("d + 1", {"d": Decimal(10**38 - 1)}),
        ("floor(f)", {"f": 1e300}),
        ("cast(f as int)", {"f": 2.0**63}),
        ("cast(t as int)", {"t": "12x"}),
        ("cast(t as int)", {"t": " 12"}),
        ("cast(t as time)", {"t": "2026-02-30T00:00:00Z"}),
        ("cast(i as decimal(2, 1))", {"i": 10}),
        ("at + interval '3000000 d'", {"at": NOON}),
        ("timestamp_millis(i)", {"i": 2**62}),
        ("exp(f)", {"f": 1000.0}),
    ],
)
def test_rule_b3_what_does_not_fit_is_an_error_never_a_wrap(text: str, row: dict[str, Any]) -> None:
    with pytest.raises(DoesNotFit, match="does not fit"):
        value(text, **row)


def test_what_is_not_evaluated_cannot_fail() -> None:
    assert value("t like '1%' and cast(t as int) > 1", t="x") is False
    assert value("a or cast(t as int) > 1", a=True, t="x") is True
    assert value("coalesce(i, cast(t as int))", i=1, t="x") == 1
    assert value("case when a then i else cast(t as int) end", a=True, i=1, t="x") == 1
    assert value("try_cast(t as int)", t="x") is None
    with pytest.raises(DoesNotFit):
        value("cast(t as int) > 1 and t like '1%'", t="x")  # left to right, as written


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("lower('STRASSE') || upper('ß')", "strasseSS"),
        ("trim('  a b ')", "a b"),
        ("length('日本🚀')", 3),
        ("substr('abcdef', 2, 3)", "bcd"),
        ("substr('abcdef', -2, 5)", "ef"),
        ("substr('abcdef', 0, 2)", "ab"),
        ("substr('abc', -5, 3)", "a"),
        ("replace('aXbX', 'X', '')", "ab"),
        ("replace('ab', '', 'x')", "ab"),
        ("'50%' like '50\\%'", True),
        ("'a\nb' like 'a_b'", True),
        ("'abc' like 'A%'", False),
        ("starts_with('abc', 'ab') and ends_with('abc', 'c') and contains('abc', 'b')", True),
        ("cast(1.50 as text)", "1.50"),
        ("cast(timestamp '0999-01-02T03:04:05Z' as text)", "0999-01-02T03:04:05.000000Z"),
    ],
)
def test_text(text: str, expected: object) -> None:
    assert value(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("extract(isodow from at)", 2),
        ("extract(week from at)", 45),
        ("hour(at)", 12),
        ("date_trunc('week', at)", datetime(2026, 11, 2, tzinfo=UTC)),
        ("date_trunc('quarter', at)", datetime(2026, 10, 1, tzinfo=UTC)),
        ("at + interval '1 d' - interval '24 h'", NOON),
        ("at >= '2026-11-03T12:00:00+00:00'", True),
        ("at in ('2026-11-03T13:34:56.789012+01:00')", True),
        ("seconds_between('2026-11-03T12:34:56Z', at)", 0.789012),
        ("at - timestamp '2026-11-03T12:30:00Z' < interval '5 min'", True),
        ("timestamp_millis(unix_millis(at))", NOON.replace(microsecond=789_000)),
    ],
)
def test_time(text: str, expected: object) -> None:
    assert value(text, at=NOON) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("distance_km(46.948, 7.447, 47.377, 8.541)", 95.479),
        ("distance_km(-33.9, 151.2, 51.5, -0.1)", 16994.718),
        ("distance_km(10, 20, 10, 20)", 0.0),
        ("distance_km(0, 0, 0, 180)", 20015.087),
        ("distance_km(91, 0, 0, 0)", None),
        ("distance_km(0, 0, 0, -180.5)", None),
        ("distance_km(0, 0, cast(null as float), 0)", None),
    ],
)
def test_distance(text: str, expected: object) -> None:
    assert value(text) == expected


def test_rows_are_mappings_sequences_or_objects() -> None:
    columns = (Column("n", INT), Column("k", INT))
    tree = parse("n * 10 + k", columns)
    assert compile(tree)({"n": 4, "k": 2}) == 42
    assert compile(tree, by_index(columns))((4, 2)) == 42
    assert compile(tree, by_attribute)(SimpleNamespace(n=4, k=2)) == 42


def test_named_rows() -> None:
    columns = (Column("n", INT),)
    tree = parse("buy.n > login.n", (), names={"buy": columns, "login": columns})
    assert compile(tree)({"buy": {"n": 2}, "login": {"n": 1}}) is True
    assert compile(tree, by_attribute)({"buy": SimpleNamespace(n=2), "login": SimpleNamespace(n=1)}) is True


def test_a_constant_that_does_not_fit_fails_only_the_rows_that_reach_it() -> None:
    assert value("a and 9223372036854775807 + 1 > 0", a=False) is False
    with pytest.raises(DoesNotFit):
        value("a and 9223372036854775807 + 1 > 0", a=True)
