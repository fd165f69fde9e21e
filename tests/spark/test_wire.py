"""The wire codec in Scala says what Python's says (rule F1): the same values, and the same refused."""

from __future__ import annotations

import base64
import json
import math
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql.classic.column import Column
from pyspark.sql.functions import col, struct

from headrace.spark.session import Spark

QUICK = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck), database=None)
FIRST, LAST = datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 30, tzinfo=UTC)


def settled(spark: Spark, type: str, raw: bytes) -> Any:
    """A value decoded and encoded by Scala: what JSON reads from it, or the text it died of."""
    fields = json.dumps([{"name": "x", "type": type, "nullable": True}])
    text = spark.jvm.Settle.value(fields, b'{"x":' + raw + b"}")
    return json.loads(text)["x"] if text.startswith("{") else text


@pytest.mark.parametrize(
    ("type", "raw", "expected"),
    [
        ("int", "-0", 0),
        ("int", str(2**63 - 1), 2**63 - 1),
        ("int", str(-(2**63)), -(2**63)),
        ("int", str(2**63), "schema"),
        ("int", "1.0", "schema"),
        ("int", "01", "undecodable"),
        ("int", '"1"', "schema"),
        ("int", "true", "schema"),
        ("float", "1", 1.0),
        ("float", "-0.0", -0.0),
        ("float", "1e999", "nan"),
        ("float", "NaN", "nan"),
        ("float", "-Infinity", "nan"),
        ("float", "1.", "undecodable"),
        ("float", ".5", "undecodable"),
        ("bool", "true", True),
        ("bool", "1", "schema"),
        ("text", '"a\\u00e9\\ud83d\\ude00\\n\\/"', "a\u00e9\U0001f600\n/"),
        ("text", '"\\ud800"', "undecodable"),
        ("text", '"\\x"', "undecodable"),
        ("text", '"\t"', "undecodable"),
        ("text", '"unfinished', "undecodable"),
        ("money", '"12.34"', "12.34"),
        ("money", "12.3", "12.30"),
        ("money", "-0.05", "-0.05"),
        ("money", '"1e2"', "100.00"),
        ("money", '"12.345"', "schema"),
        ("money", '"12.340"', "12.34"),
        ("money", '"9999999999999999.99"', "9999999999999999.99"),
        ("money", '"10000000000000000"', "schema"),
        ("money", '"1e999999999"', "schema"),
        ("money", '"NaN"', "nan"),
        ("money", '""', "schema"),
        ("decimal(30, 4)", '"12345678901234567890.1234"', "12345678901234567890.1234"),
        ("time", '"2026-11-03T12:00:00Z"', "2026-11-03T12:00:00.000000Z"),
        ("time", '"2026-11-03 12:00:00.5+02:00"', "2026-11-03T10:00:00.500000Z"),
        ("time", '"2026-11-03T12:00:00.9999999Z"', "2026-11-03T12:00:01.000000Z"),
        ("time", '"2024-02-29T00:00:00Z"', "2024-02-29T00:00:00.000000Z"),
        ("time", '"2023-02-29T00:00:00Z"', "schema"),
        ("time", '"2026-11-03T12:00:00"', "schema"),
        ("time", '"2026-11-03T24:00:00Z"', "schema"),
        ("time", '"2026-11-03T12:00:60Z"', "schema"),
        ("time", '"2026-11-03T12:00:00+24:00"', "schema"),
        ("time", "1700000000", "schema"),
        ("bytes", '"aGk="', "aGk="),
        ("bytes", '"aGk"', "schema"),
        ("bytes", '"aG-_"', "schema"),
        ("list of int", "[1, 2]", [1, 2]),
        ("list of int", "[]", []),
        ("list of int", '[1, "2"]', "schema"),
        ("list of int", "[1, null]", "schema"),
        ("list of money", '["1.5"]', ["1.50"]),
        ("int", "null", None),
        ("int", "1}x{", "undecodable"),
    ],
)
def test_f1_values_at_the_edges(spark: Spark, type: str, raw: str, expected: Any) -> None:
    found = settled(spark, type, raw.encode())
    if expected in ("schema", "undecodable", "nan"):
        assert found.split(":")[0] == expected
    else:
        assert found == expected


@QUICK
@given(st.text())
def test_f1_any_text(spark: Spark, text: str) -> None:
    for raw in (msgspec.json.encode(text), json.dumps(text).encode()):
        assert settled(spark, "text", raw) == text


@QUICK
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_f1_any_float(spark: Spark, value: float) -> None:
    found = settled(spark, "float", msgspec.json.encode(value))
    assert found == value
    assert math.copysign(1, found) == math.copysign(1, value)


@QUICK
@given(st.decimals(allow_nan=False, allow_infinity=False, places=2, min_value=-(10**15), max_value=10**15))
def test_f1_any_money(spark: Spark, value: Decimal) -> None:
    assert Decimal(settled(spark, "money", msgspec.json.encode(value))) == value


@QUICK
@given(st.datetimes(FIRST.replace(tzinfo=None), LAST.replace(tzinfo=None)), st.integers(-1439, 1439))
def test_f1_any_time(spark: Spark, naive: datetime, minutes: int) -> None:
    moment = naive.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    expected = moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    assert settled(spark, "time", msgspec.json.encode(moment)) == expected


@QUICK
@given(st.binary())
def test_f1_any_bytes(spark: Spark, value: bytes) -> None:
    assert base64.b64decode(settled(spark, "bytes", msgspec.json.encode(value))) == value


LEAF = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
JSON = LEAF  # not `recursive`, whose draws were not the same twice, once in many runs
for _ in range(3):
    JSON = LEAF | st.lists(JSON, max_size=3) | st.dictionaries(st.text(), JSON, max_size=3)


def is_object(raw: bytes) -> bool:
    """As Python reads a field that it does not know: a number may be beyond all floats there."""
    try:
        return isinstance(msgspec.json.decode(raw), dict)
    except msgspec.ValidationError:  # such a number; whether the rest is sound it does not say
        with suppress(ValueError):
            return isinstance(json.loads(raw), dict)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    return False


@QUICK
@given(JSON, st.integers(0, 10_000), st.sampled_from([b"", b'"', b"{", b"]", b",", b"0", b"\\", b"\xff"]))
def test_f1_what_is_no_json_for_python_is_none_for_scala(spark: Spark, value: Any, place: int, change: bytes) -> None:
    """A field that is not known may hold anything, if it is JSON; a byte more or less and it is not, or for both."""
    fields = json.dumps([{"name": "x", "type": "int", "nullable": True}])
    whole = b'{"other": ' + json.dumps(value, ensure_ascii=False).encode() + b', "x": 1}'
    at = place % len(whole)
    for raw in (whole, whole[:at] + change + whole[at + 1 :]):
        known = is_object(raw)
        found = spark.jvm.Settle.value(fields, raw)
        assert found.startswith("undecodable") != known or found.startswith(("schema", "nan")), (raw, found)


def test_a_number_beyond_all_floats_may_stand_in_a_field_that_is_not_known(spark: Spark) -> None:
    raw = b'{"other": [11797879049354708e+293], "x": 1}'
    assert is_object(raw)
    assert spark.jvm.Settle.value(json.dumps([{"name": "x", "type": "int", "nullable": True}]), raw) == '{"x":1}'


def test_deep_nesting_is_refused_not_a_crash(spark: Spark) -> None:
    assert settled(spark, "int", b"[" * 100_000).startswith("undecodable")


def test_packed_columns_come_back_and_keys_have_one_text(spark: Spark) -> None:
    chain = spark.jvm.Chain
    frame = spark.session.sql(
        "select 7 as n, 'a\"b' as t, cast(1.5 as decimal(18,2)) as m, timestamp'2026-11-03 12:00:00' as at, "
        "cast(null as string) as none, array('x', 'y') as l, true as b from range(2)"
    )
    packed = frame.select(Column(chain.pack(struct("n", "t", "m", "at", "none", "l", "b")._jc)).alias("p"))
    ddl = "n int, t string, m decimal(18,2), at timestamp, none string, l array<string>, b boolean"
    back = packed.select(Column(chain.unpack(col("p")._jc, ddl)).alias("u")).select("u.*")
    assert back.collect() == frame.collect()
    encoded = frame.select(Column(chain.encode(struct("*")._jc))).first()[0]
    assert json.loads(bytes(encoded)) == {
        "n": 7, "t": 'a"b', "m": "1.50", "at": "2026-11-03T12:00:00.000000Z", "none": None, "l": ["x", "y"], "b": True
    }  # fmt: skip
    keys = [["t"], ["n"], ["m"], ["at"], ["b"], ["none"], ["n", "t", "m", "none"]]
    found = frame.select(*(Column(chain.keyText(struct(*k)._jc)).alias(f"k{i}") for i, k in enumerate(keys))).first()
    assert [None if k is None else bytes(k).decode() for k in found] == [
        'a"b', "7", "1.50", "2026-11-03T12:00:00.000000Z", "true", None, '[7,"a\\"b","1.50",null]'
    ]  # fmt: skip
