"""Expressions on Spark: the same value and the same fault as in Python, for random trees over random rows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from decimal import Decimal
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from headrace.base.clock import micros
from headrace.base.errors import DoesNotFit
from headrace.expr import compile, parse
from headrace.expr.decimals import EXACT
from headrace.expr.functions import FUNCTIONS
from headrace.expr.nodes import Expr
from headrace.expr.types import DURATION, NULL, TIME
from headrace.spark.columns import column, fault
from headrace.spark.functions import SPECIAL, spark_type
from headrace.spark.session import Spark
from tests.expr.trees import COLUMNS, Trees, row

Row = dict[str, Any]


def test_random_trees_mean_the_same_on_both_engines(spark: Spark) -> None:
    @settings(
        max_examples=2,
        deadline=None,
        database=None,
        phases=[Phase.explicit, Phase.generate],  # a smaller seed is no smaller case: `smallest` does the shrinking
        suppress_health_check=list(HealthCheck),
    )
    @given(seed=st.integers(0, 2**32))
    @example(seed=1)
    def agree(seed: int) -> None:
        random = Random(seed)
        rows = [row(random) for _ in range(25)]
        trees = [Trees(random).expr(random.choice([1, 2, 2, 3])) for _ in range(110)]
        with ansi(spark, random.random() < 0.5):
            differing = differences(spark, trees, rows)
            assert not differing, smallest(spark, differing, rows)

    agree()


# Each of these differed once: between engines, between codegen and interpretation, or by raising instead of a fault.
KEPT = [
    "-w",
    "abs(w)",
    "-nullif(w, -0.01)",
    "round(w, 5)",
    "cast(w as text)",
    "cast(1e0 as decimal(38, 18))",
    "cast(cast(0. as decimal(38, 10)) as text)",
    "cast(g as int)",
    "floor(1e300)",
    "round(-1., 9) / (m * j)",
    "f in (0e0, 1e0, 2e0, 3e0, 4e0, 5e0, 6e0, 7e0, 8e0, 9e0, 10e0, 11e0)",
    "round(g, 2)",
    "cast(g as decimal(38, 2))",
    "i % 0",
    "substr(t, i, j)",
    "cast(t as float)",
    "replace(u, '', 'x')",
    "at - interval '400 d'",
]


@pytest.mark.parametrize("ansi_on", [True, False])
def test_trees_that_differed_once(spark: Spark, ansi_on: bool) -> None:
    random = Random(7)
    rows = [row(random) for _ in range(60)]
    trees = [parse(text, COLUMNS) for text in KEPT]
    with ansi(spark, ansi_on):
        assert differences(spark, trees, rows) == []


def test_approximate_functions_agree_within_1e_9(spark: Spark) -> None:
    rows = [{"f": a, "g": b} for a in (0.0, -0.5, 0.3, 1.0, 7.25, 700.0, 1e4) for b in (-2.5, 0.0, 0.5, 3.0, 100.0)]
    columns = tuple(column for column in COLUMNS if column.name in ("f", "g"))
    calls = {"power": "power(f, g)"}
    names = [op for op, function in FUNCTIONS.items() if function.approximate]
    trees = [parse(calls.get(op, f"{op}(f)"), columns) for op in names]
    got = on_spark(spark, trees, rows, columns)
    for each, answers in zip(rows, got, strict=True):
        for tree, theirs in zip(trees, answers, strict=True):
            ours = in_python(tree, each)
            if isinstance(ours, float) and isinstance(theirs, float):
                assert math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-300), (str(tree), each)
            else:
                assert ours == theirs, (str(tree), each)


def test_distances_are_the_same_to_the_metre(spark: Spark) -> None:
    random = Random(3)
    places = [0.0, -0.0, 90.0, -90.0, 90.1, -180.0, 180.0, 200.0, None]
    near = lambda: random.choice([*places, *(random.uniform(-90, 90) for _ in places)])  # noqa: E731
    rows = [{"f": near(), "g": near(), "i": random.randint(-90, 90)} for _ in range(500)]
    columns = tuple(column for column in COLUMNS if column.name in ("f", "g", "i"))
    trees = [parse(f"distance_km({two})", columns) for two in ("f, g, g, f", "f, f, i, g", "g, i, g, f + 1e-4")]
    assert on_spark(spark, trees, rows, columns) == [[in_python(tree, each) for tree in trees] for each in rows]


def test_named_rows_are_found_by_their_qualified_name(spark: Spark) -> None:
    import pyspark.sql.functions as sf

    tree = parse("buy.i > login.i", (), names={"buy": COLUMNS, "login": COLUMNS})
    frame = framed(spark, [(2, 1)], "a bigint, b bigint")
    assert frame.select(column(tree, {"buy.i": sf.col("a"), "login.i": sf.col("b")})).first()[0] is True


def test_what_cannot_fail_has_no_fault(spark: Spark) -> None:
    import pyspark.sql.functions as sf

    values = {each.name: sf.col(each.name) for each in COLUMNS}
    for text in ("m > 100 and t <> 'a'", "m + m", "m * 2", "coalesce(i, 0)", "try_cast(t as int)", "n / 3"):
        assert fault(parse(text, COLUMNS), values) is None, text
    assert fault(parse("i + 1 > 0", COLUMNS), values) is not None


def test_every_function_of_the_table_has_a_spark_side() -> None:
    import pyspark.sql.functions as sf

    direct = {op for op, function in FUNCTIONS.items() if function.spark}
    assert all(hasattr(sf, FUNCTIONS[op].spark) for op in direct)
    assert direct | set(SPECIAL) == set(FUNCTIONS)
    assert not direct & set(SPECIAL)


# -- both engines, and how they differ


def differences(spark: Spark, trees: Sequence[Expr], rows: Sequence[Row]) -> list[tuple[Expr, Row, object, object]]:
    """The first row on which each tree differs, with what Python and Spark say."""
    got = on_spark(spark, trees, rows)
    found = []
    for place, tree in enumerate(trees):
        for each, answers in zip(rows, got, strict=True):
            ours, theirs = in_python(tree, each), answers[place]
            if repr(ours) != repr(theirs):
                found.append((tree, each, ours, theirs))
                break
    return found


def smallest(spark: Spark, differing: list[tuple[Expr, Row, object, object]], rows: Sequence[Row]) -> str:
    """The smallest parts of the trees that differ by themselves: what to look at, and to keep as a test."""
    parts = {part for tree, *_ in differing for part in tree.walk() if part.type not in (NULL, DURATION)}
    found = differences(spark, sorted(parts, key=lambda part: len(list(part.walk()))), rows)
    small = [each for each in found if not any(other[0] in list(each[0].walk())[1:] for other in found)]
    return "\n".join(
        f"{tree}: Python {ours!r}, Spark {theirs!r} at { ({ref.name: each[ref.name] for ref in tree.refs()}) }"
        for tree, each, ours, theirs in small
    )


def in_python(tree: Expr, values: Row) -> object:
    try:
        return _plain(compile(tree)(values))
    except DoesNotFit as misfit:
        return misfit.what


def on_spark(
    spark: Spark, trees: Sequence[Expr], rows: Sequence[Row], columns: Sequence[Any] = COLUMNS
) -> list[list[object]]:
    """One job for all trees: per row, what each tree gives. Times travel as microseconds, so that no zone meddles."""
    import pyspark.sql.functions as sf

    schema = ", ".join(f"{c.name} {'bigint' if c.type == TIME else spark_type(c.type)}" for c in columns)
    frame = framed(spark, [tuple(_plain(each[c.name]) for c in columns) for each in rows], schema)
    values = {c.name: sf.timestamp_micros(c.name) if c.type == TIME else sf.col(c.name) for c in columns}
    selected = []
    for number, tree in enumerate(trees):
        value, wrong = column(tree, values), fault(tree, values)
        selected.append((sf.unix_micros(value) if tree.type == TIME else value).alias(f"value{number}"))
        selected.append((sf.lit(None).cast("string") if wrong is None else wrong).alias(f"fault{number}"))
    result = frame.select(*selected)
    for tree, made in zip(trees, result.schema.fields[::2], strict=True):
        assert made.dataType.simpleString() == ("bigint" if tree.type == TIME else spark_type(tree.type)), str(tree)
    return [
        [_plain(answers[i]) if answers[i + 1] is None else answers[i + 1] for i in range(0, len(answers), 2)]
        for answers in result.collect()
    ]


def framed(spark: Spark, rows: Sequence[tuple[object, ...]], schema: str) -> Any:
    """In one partition: Spark would make one for each of its threads, and ask a Python worker for every one of them."""
    return spark.session.createDataFrame(spark.session.sparkContext.parallelize(rows, 1), schema)


def _plain(value: object) -> object:
    """A form in which equal values of both engines print alike; the sign of a zero shows."""
    if isinstance(value, datetime):
        return micros(value)
    if isinstance(value, Decimal):
        return value.normalize(EXACT)
    return bytes(value) if isinstance(value, bytearray) else value


@contextmanager
def ansi(spark: Spark, on: bool) -> Iterator[None]:
    before = spark.session.conf.get("spark.sql.ansi.enabled")
    spark.session.conf.set("spark.sql.ansi.enabled", str(on).lower())
    try:
        yield
    finally:
        spark.session.conf.set("spark.sql.ansi.enabled", before)
