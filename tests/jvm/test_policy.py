"""Policies in the JVM against those in Python: the same rows to both, compared bit for bit."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

import headrace as hr
from headrace.expr.types import BOOL, FLOAT, INT, MONEY, TEXT, TIME, Column
from headrace.model.decided import SAID
from headrace.spark.chain import ddl
from headrace.spark.deciding import compiled, trees_json
from headrace.spark.functions import spark_type
from headrace.spark.session import Spark
from headrace.steps import plain
from headrace.steps.policy import Judge, Standing
from headrace.steps.trees import exp, raw, score
from tests.steps.boosted import FEATURES, booster, model, rows

COLUMNS = (
    Column("amount", MONEY),
    Column("hour", INT, True),
    Column("km", FLOAT, True),
    Column("times", BOOL),
    Column("country", TEXT, True),
    Column("at", TIME),
)
RULES = [
    hr.Rule(name="known", when="country = 'CH' and amount < 10", action="allow", final=True),
    hr.Rule(name="large", when="amount > 500", action="review"),
    hr.Rule(name="far", when="km / hour > 100", action="decline", reason='far too fast: "über" 100'),  # hour: 0, null
    hr.Rule(name="over", when="hour * 4611686018427387904 > 0", action="decline"),
    hr.Rule(name="lazy", when="hour = 3 or cast(km as int) * 4611686018427387904 < 0", action="review"),
    hr.Rule(name="night", when="extract(hour from at) < 5 and country in ('BR', 'FR')", action="review", final=True),
    hr.Rule(name="odd", when="case when times then lower(country) like 'f%' else null end", action="allow"),
]


def row(chance: random.Random) -> tuple[Any, ...]:
    return (
        Decimal(chance.choice((0, 999, 1_000, 50_001, -7, chance.randrange(10**17)))).scaleb(-2),
        chance.choice((None, 0, 1, 2, 3, -5, 23)),
        chance.choice((None, 0.0, -0.0, 99.5, 1e300, chance.uniform(-500, 500))),
        chance.random() < 0.5,
        chance.choice((None, "CH", "FR", "BR", "fr")),
        datetime(2026, 11, 3, tzinfo=UTC) + timedelta(minutes=chance.randrange(1_440)),
    )


POLICIES = [
    hr.Policy(rules=RULES),
    hr.Policy(model=model(), thresholds={"review": 0.5, "decline": 0.9}),
    hr.Policy(rules=RULES, model=model(objective="regression"), thresholds={"decline": -0.01}),
    hr.Policy(),
]


@pytest.fixture
def place(spark: Spark) -> Iterator[str]:
    """Where policies stand while a test runs."""
    spark.jvm.Policies.join("test")
    yield "test"
    spark.jvm.Policies.leave("test")


def test_the_kernel_scores_a_hundred_thousand_rows_as_lightgbm_and_as_python(spark: Spark) -> None:
    asked = rows(100_000, seed=3, odd=True)
    packed = asked.astype(">f8").tobytes()
    for kind in ({}, {"zero_as_missing": True, "sigmoid": 0.7}):
        ours = model(**kind)

        told = spark.jvm.Pure.scored(json.dumps(trees_json(ours)), len(FEATURES), packed)

        scores, sums = (list(each) for each in zip(*struct.iter_unpack(">dd", told), strict=True))
        assert sums == booster(**kind).predict(asked, raw_score=True).tolist()
        few = asked[:3_000].tolist()
        assert (scores[:3_000], sums[:3_000]) == ([score(ours, row) for row in few], [raw(ours, row) for row in few])


def test_exp_is_that_of_java_where_its_ways_part_too(spark: Spark) -> None:
    chance, java = random.Random(1), spark.session._jvm.java.lang.StrictMath
    edges = [0.34657, 0.346574, 1.03972, 2.0**-28, 709.78, -708.4, -745.1]
    asked = [edge * sign * (1 + chance.uniform(-1e-5, 1e-5)) for edge in edges for sign in (1, -1) for _ in range(60)]
    asked += [chance.uniform(-40, 40) for _ in range(500)]
    assert [exp(x) for x in asked] == [java.exp(x) for x in asked]


@pytest.mark.parametrize("number", range(len(POLICIES)))
def test_the_kernel_decides_as_python_does(spark: Spark, place: str, number: int) -> None:
    chance, active, shadow = random.Random(number), POLICIES[number], POLICIES[number - 1]
    asked = [row(chance) for _ in range(1_000)]
    standing = Standing(
        default="review", active=Judge(active, COLUMNS, "p/0@7"), shadow=Judge(shadow, COLUMNS, "p/0@8")
    )

    publish(spark, place, active, "p/0@7")
    publish(spark, place, shadow, "p/0@8", shadow=True)

    assert decided(spark, place, asked) == [standing.judge(values).values for values in asked]


def test_without_a_policy_the_default_is_said(spark: Spark, place: str) -> None:
    assert decided(spark, place, [row(random.Random(1))]) == [Standing(default="decline").judge(()).values]


def publish(spark: Spark, place: str, policy: hr.Policy, seen: str, *, shadow: bool = False) -> None:
    text, asked = compiled(policy.bound(COLUMNS), COLUMNS, seen)
    spark.jvm.Policies.publish(place, shadow, text, ddl(COLUMNS), [one._jc for one in asked])


def decided(spark: Spark, place: str, asked: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    into = [plain.into(column.type) for column in COLUMNS]
    group = {"types": [spark_type(c.type) for c in COLUMNS], "rows": [plain.each(into, values) for values in asked]}
    (told,) = json.loads(spark.jvm.Pure.decided(json.dumps([group]), place, "decline", ddl(COLUMNS), ddl(SAID)))
    assert [row[: len(COLUMNS)] for row in told] == [list(values) for values in group["rows"]]
    return [tuple(row[len(COLUMNS) :]) for row in told]
