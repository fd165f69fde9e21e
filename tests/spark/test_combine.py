"""Combine: rows are put together before the shuffle in code that Spark generates as they are from row to row, and
none is lost or counted twice; those that may not be put together go on as they are."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyspark.sql.functions as sf
import pytest
from pyspark.sql import DataFrame

from headrace.spark.routes import CHAIN
from headrace.spark.session import Spark
from headrace.steps import aggregate, slices
from tests.spark.staging import column, field

TOGETHER = 9  # the port of such rows
SECOND = 1_000_000
SIZE = 60 * SECOND
WATERMARK = 3_600_000  # ms: one hour
NOW = 3_600 * SECOND  # the first slice that is open
TEXT, NUMBER, FLOAT, ELSEWHERE = 1, 2, 3, 7  # steps: by a text, by an int, with a float; and one that is not ours

FULL = 1 << 15  # portions in memory


@pytest.mark.parametrize("copies", [1, 2])
def test_generated_code_puts_rows_together_as_the_plain_way_does(spark: Spark, copies: int) -> None:
    chain = rows(spark, 10_000, keys=100, copies=copies)

    told, plain = both(spark, chain, DataFrame.collect)

    assert told == plain
    assert counted(told) == counted(chain.collect())
    ports = Counter((row.step, row.port) for row in told)
    assert all(0 < ports[step, TOGETHER] <= 400 for step in (TEXT, NUMBER, FLOAT))
    assert (ELSEWHERE, TOGETHER) not in ports
    as_it_is = [row for row in told if row.port == 0 and row.step != ELSEWHERE]
    assert {reason(row) for row in as_it_is} == {"late", "derived", "no key", "no number", "another watermark"}


@pytest.mark.parametrize(("keys", "copies"), [(9_000, 1), (9_000, 3), (1 << 40, 1), (1 << 40, 3)])
def test_portions_leave_when_there_are_many(spark: Spark, keys: int, copies: int) -> None:
    """Where a row is copied, Spark cannot be asked between the copies whether it wants more: so the two ways may differ
    in what they put together. Where keys hardly repeat, both give up."""
    chain = rows(spark, 120_000 // copies, keys=keys, steps=1, copies=copies)

    told, plain = both(spark, chain, totals)

    assert told["rows"] == plain["rows"] == totals(chain)["rows"]
    assert told["together"] == FULL if keys > FULL else told["together"] > FULL
    if copies == 1:
        assert told == plain


def both(spark: Spark, chain: DataFrame, read: Callable[[DataFrame], Any]) -> list[Any]:
    """What is read of the rows that come out of generated code, and of those from row to row."""
    found = []
    for generated in ("true", "false"):
        with conf(spark, {"spark.sql.codegen.wholeStage": generated, "spark.sql.codegen.fallback": "false"}):
            frame = combined(spark, chain)
            assert (") Combine" in frame._jdf.queryExecution().executedPlan().toString()) == (generated == "true")
            found.append(read(frame))
    return found


def totals(frame: DataFrame) -> dict[str, int]:
    """Behind a shuffle, as a stage is. `rows`: how many there are of each step, key and slice, as one number."""
    together = sf.col("port") == TOGETHER
    moved = frame.repartition(1)
    slices = moved.groupBy("step", "key", sf.floor(sf.col("time") / SIZE).alias("slice")).agg(
        sf.sum(sf.when(together, sf.col("off")).otherwise(1)).alias("n")
    )
    rows = slices.agg(sf.bit_xor(sf.xxhash64("step", "key", "slice", "n"))).first()
    told = moved.agg(sf.count_if(together), sf.bit_xor(sf.xxhash64(*CHAIN))).first()
    assert rows is not None
    assert told is not None
    return {"rows": rows[0], "together": told[0], "digest": told[1]}


def combined(spark: Spark, chain: DataFrame) -> DataFrame:
    steps = [
        step(TEXT, "string", aggregate.Spec(name="n", kind="sum", of="int")),
        step(NUMBER, "bigint", aggregate.Spec(name="n", kind="max", of="int")),
        step(FLOAT, "string", aggregate.Spec(name="n", kind="sum", of="float")),
    ]
    spec = {"app": "a", "version": "1", "topics": ["rows"], "by_clock": False, "steps": steps}
    sql = spark.session._jvm.org.apache.spark.sql  # type: ignore[union-attr]
    stage = spark.jvm.StageSpec.parse(json.dumps(spec))
    plan = sql.headrace.Combined(stage, chain._jdf.queryExecution().analyzed())
    together = DataFrame(sql.classic.Dataset.ofRows(spark.session._jsparkSession, plan), spark.session)
    return together.withColumn("part", sf.col("part") + 0)  # a projection stands above it, as in a stage


def step(ordinal: int, key: str, figure: aggregate.Spec) -> dict[str, Any]:
    spec = slices.Spec(size=SIZE, every=SIZE, aggregates=(aggregate.Spec(name="times", kind="count"), figure))
    value = "double" if figure.of == "float" else "bigint"
    return {
        "ordinal": ordinal, "name": f"w{ordinal}", "hold_ms": 0, "spec": spec.as_json(), "keys": 1, "emits": [],
        "inputs": [[field("k0", key), field("a0", value)]],
        "output": [field("key", key), field("window_start", "timestamp"), field("window_end", "timestamp"),
                   field("kind", "string"), field("revision", "bigint"), field("times", "bigint"), field("n", value)],
    }  # fmt: skip


def rows(spark: Spark, count: int, *, keys: int, steps: int = 4, copies: int = 1) -> DataFrame:
    """Rows of so many steps in turn, as the compiler makes them: a CASE for what differs between steps. A few are late,
    come from a step, have no key or no number, or meet another watermark than those around them."""
    few = sf.pmod(sf.xxhash64("id"), sf.lit(1_000))
    number = sf.pmod(sf.xxhash64("id", "copy"), sf.lit(keys))
    copied = sf.lit(0) if copies == 1 else sf.explode(sf.array(*(sf.lit(n) for n in range(copies))))
    given = spark.session.range(0, count, 1, 1).select("id", copied.alias("copy")).select(
        "id", few.alias("few"), sf.pmod(sf.col("id"), sf.lit(steps)).alias("turn"), number.alias("number"),
        sf.concat(sf.lit("key-"), number).alias("text"),
    )  # fmt: skip

    def by_step(text: Any, number: Any, floating: Any, other: Any) -> Any:
        return sf.when(sf.col("turn") == 0, text).when(sf.col("turn") == 1, number).when(
            sf.col("turn") == 2, floating).otherwise(other)  # fmt: skip

    def packed(key: str, value: Any) -> Any:
        return column(spark, "pack", sf.struct(sf.col(key).alias("k"), value.alias("a")))

    text, figure = sf.col("text").cast("binary"), sf.col("id") * 3
    key = column(spark, "keyText", sf.struct("text"))
    floating = sf.when(sf.col("few") == 4, sf.lit(float("nan"))).otherwise(figure / 7)
    late = sf.when(sf.col("few") == 1, 6 * SIZE).otherwise(0)
    return given.select(
        by_step(*map(sf.lit, (TEXT, NUMBER, FLOAT, ELSEWHERE))).alias("step"), sf.lit(0).alias("port"),
        sf.when(sf.col("few") != 3, by_step(text, sf.encode("text", "utf-8"), key, text)).alias("key"),
        (sf.lit(NOW) + sf.pmod(sf.xxhash64(-sf.col("id")), sf.lit(4 * SIZE)) - late).alias("time"),
        (sf.lit(WATERMARK) + (sf.col("few") == 5).cast("long")).alias("before"),
        sf.when(sf.col("few") == 2, 1_001).otherwise(0).alias("src"), sf.lit(0).alias("part"),
        sf.col("id").alias("off"), sf.when(sf.col("few") == 2, sf.unhex(sf.lit("0a0b"))).alias("id"),
        by_step(packed("text", figure), packed("number", figure), packed("text", floating), text).alias("payload"),
    )  # fmt: skip


def reason(row: Any) -> str | None:
    """Why it was not put together."""
    if row.time < NOW:
        return "late"
    if row.src:
        return "derived" if row.id == b"\x0a\x0b" else None
    if row.key is None:
        return "no key"
    if row.before != WATERMARK:
        return "another watermark"
    return "no number" if row.step == FLOAT else None


def counted(told: list[Any]) -> Counter[tuple[int, bytes | None, int]]:
    """Rows by step, key and slice."""
    total: Counter[tuple[int, bytes | None, int]] = Counter()
    for row in told:
        key = None if row.key is None else bytes(row.key)
        total[row.step, key, row.time // SIZE] += row.off if row.port == TOGETHER else 1
    return total


@contextmanager
def conf(spark: Spark, settings: dict[str, str]) -> Iterator[None]:
    before = {name: spark.session.conf.get(name) for name in settings}
    for name, value in settings.items():
        spark.session.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.session.conf.set(name, value)
