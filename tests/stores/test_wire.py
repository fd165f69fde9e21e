"""The wire form of staged values: the same text that the log's own rules give, however Arrow writes it."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.base.clock import rfc3339
from headrace.expr.types import BYTES, FLOAT, INT, TEXT, TIME, Type, decimal, list_of
from headrace.stores import wire

TIMES = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999), timezones=st.just(UTC))


@given(st.lists(TIMES | st.none()))
def test_times_are_as_the_log_writes_them(times: list[datetime | None]) -> None:
    column = pa.chunked_array([pa.array(times, pa.timestamp("us", "UTC"))])
    assert wire.values(column, TIME) == [None if one is None else rfc3339(one) for one in times]


@given(st.integers(0, 20), st.lists(st.integers(-(10**37), 10**37) | st.none()))
def test_decimals_have_all_their_digits_and_no_exponent(scale: int, units: list[int | None]) -> None:
    numbers = [None if n is None else Decimal(f"{n}E-{scale}") for n in units]
    column = pa.chunked_array([pa.array(numbers, pa.decimal128(38, scale))])
    found = wire.values(column, decimal(38, scale))
    assert found == [None if n is None else f"{n:f}" for n in numbers]


@pytest.mark.parametrize(
    ("value", "type", "kind", "written"),
    [
        ("Zoë", TEXT, pa.string(), b'"Zo\xc3\xab"'),
        (2**63 - 1, INT, pa.int64(), b"9223372036854775807"),
        (float("nan"), FLOAT, pa.float64(), b"null"),
        (b"\x00\xff", BYTES, pa.binary(), b'"AP8="'),
        ([Decimal("1.50"), None], list_of(decimal(18, 2)), pa.list_(pa.decimal128(18, 2)), b'["1.50",null]'),
        (
            [datetime(2026, 11, 3, tzinfo=UTC)],
            list_of(TIME),
            pa.list_(pa.timestamp("us", "UTC")),
            b'["2026-11-03T00:00:00.000000Z"]',
        ),
    ],
)
def test_other_values_as_json(value: Any, type: Type, kind: pa.DataType, written: bytes) -> None:
    (found,) = wire.values(pa.chunked_array([pa.array([value], kind)]), type)
    assert wire.json(found) == written
