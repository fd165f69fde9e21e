"""The wire: rules F1 and F3, and every way a value can be wrong."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as some

from headrace.base.errors import DataError, MissingField, MoneyOverflow, Undecodable, UnknownField, WrongType
from headrace.base.money import LIMIT, Money, money
from headrace.log.codec import Codec
from headrace.log.offsets import record_time
from headrace.model.event import event, event_type
from tests.properties import examples

AT = datetime(2026, 11, 3, 15, tzinfo=UTC)


@event(topic="payments", key="card_id", time="at", id="payment_id")
class Payment:
    payment_id: str
    card_id: str
    amount: Money
    at: datetime


@event(topic="all", key="country, number")
class All:
    country: str
    number: int
    ratio: float
    yes: bool
    raw: bytes
    times: list[datetime]
    cost: Money | None = None


PAYMENT = Payment("p1", "c1", money("12.34"), AT)
CODEC = Codec(Payment)


def test_f1_values_are_json_with_money_and_times_as_text() -> None:
    _, value, _, _ = CODEC.encode(PAYMENT)
    assert value == b'{"payment_id":"p1","card_id":"c1","amount":"12.34","at":"2026-11-03T15:00:00.000000Z"}'
    _, value, _, _ = Codec(All).encode(All("DE", 7, 0.5, True, b"\x00\xff", [AT, AT + timedelta(microseconds=1)]))
    assert json.loads(value) == {
        "country": "DE",
        "number": 7,
        "ratio": 0.5,
        "yes": True,
        "raw": "AP8=",
        "times": ["2026-11-03T15:00:00.000000Z", "2026-11-03T15:00:00.000001Z"],
        "cost": None,
    }


def test_f1_keys_are_text_and_composite_keys_a_json_array() -> None:
    assert CODEC.encode(PAYMENT)[0] == b"c1"
    assert Codec(All).encode(All("DE", 7, 0.5, True, b"", []))[0] == b'["DE",7]'
    assert Codec(All).key("DE", 7) == b'["DE",7]'


def test_f1_headers_say_type_schema_and_id() -> None:
    assert CODEC.encode(PAYMENT)[2] == [
        ("hr-type", b"Payment"),
        ("hr-schema", event_type(Payment).schema.encode()),
        ("hr-id", b"p1"),
    ]


def test_an_event_without_id_gets_one_that_nobody_has() -> None:
    one, two = (dict(Codec(All).encode(All("DE", 7, 0.5, True, b"", []))[2])["hr-id"] for _ in range(2))
    assert one != two


def test_f3_the_record_time_is_the_event_time() -> None:
    assert CODEC.encode(PAYMENT)[3] == 1793718000000
    assert CODEC.encode(Payment("p", "c", money(1), AT + timedelta(microseconds=1999)))[3] == 1793718000001


@examples(100)
@example(datetime(2106, 3, 1, 0, 0, 0, 99_999, tzinfo=UTC))  # more digits than a float of seconds has
@given(some.datetimes(min_value=datetime(1950, 1, 1), max_value=datetime(2200, 1, 1), timezones=some.just(UTC)))
def test_f3_the_fast_record_time_is_the_exact_one(at: datetime) -> None:
    assert CODEC.encode(Payment("p", "c", money(1), at))[3] == record_time(at)


text = some.text(some.characters(exclude_categories=["Cs"]))
amounts = some.decimals(min_value=-LIMIT, max_value=LIMIT, places=2)


@examples(100)
@given(text, text, amounts, some.datetimes(timezones=some.sampled_from([UTC, timezone(timedelta(hours=-5))])))
def test_what_is_encoded_is_decoded(id: str, card: str, amount: Decimal, at: datetime) -> None:
    if not datetime(2, 1, 1, tzinfo=UTC) < at < datetime(9998, 1, 1, tzinfo=UTC):
        at = AT
    at = at.replace(fold=0)  # an instant has no fold
    made = Payment(id, card, amount, at)
    key, value, _, _ = CODEC.encode(made)
    again = CODEC.decode(value)
    assert (again, repr(again)) == (made, repr(made))
    assert key == card.encode()


def value(**changed: Any) -> bytes:
    row = {"payment_id": "p1", "card_id": "c1", "amount": "12.34", "at": "2026-11-03T15:00:00.000000Z"} | changed
    return json.dumps({name: one for name, one in row.items() if one is not ...}).encode()


def test_decoded_values_are_settled_like_made_ones() -> None:
    found = CODEC.decode(value(amount="12.3", at="2026-11-03T16:00:00+01:00"))
    assert (str(found.amount), found.at, found.at.tzinfo) == ("12.30", AT, UTC)


def test_fields_of_a_newer_writer_are_passed_over() -> None:
    assert CODEC.decode(value(colour="red")) == PAYMENT


@pytest.mark.parametrize(
    ("raw", "error", "says"),
    [
        (b"", Undecodable, "is no JSON"),
        (b"\xff\x00", Undecodable, "is no JSON"),
        (b"{", Undecodable, "is no JSON"),
        (b"[1]", WrongType, "Payment: expected `object`, got `array`"),
        (value(card_id=7), WrongType, "Payment.card_id: expected `str`, got `int`"),
        (value(card_id=None), WrongType, "Payment.card_id"),
        (value(card_id=...), MissingField, "needs the field 'card_id'"),
        (value(payment_id=...), MissingField, "needs the field 'payment_id'"),
        (value(at=...), MissingField, "needs the field 'at'"),
        (value(at="2026-11-03T15:00:00"), WrongType, "Payment.at"),
        (value(at="yesterday"), WrongType, "Payment.at"),
        (value(amount="NaN"), WrongType, "Payment.amount: NaN is not money"),
        (value(amount="1.234"), WrongType, "more than two digits"),
        (value(amount="1e17"), MoneyOverflow, "too large"),
        (value(amount="much"), WrongType, "Payment.amount"),
    ],
)
def test_b1_what_cannot_be_read_says_why(raw: bytes, error: type[DataError], says: str) -> None:
    with pytest.raises(error) as refused:
        CODEC.decode(raw)
    assert says in refused.value.what


def test_big_ints_do_not_pass_as_64_bits() -> None:
    row = b'{"country":"DE","number":9223372036854775808,"ratio":1,"yes":true,"raw":"","times":[]}'
    with pytest.raises(WrongType, match="number"):
        Codec(All).decode(row)


def test_what_was_typed_is_shown_again_with_a_way_to_write_it() -> None:
    with pytest.raises(WrongType) as refused:
        CODEC.read({"payment_id": "p1", "card_id": "c1", "amount": "oops", "at": "2026-11-03T15:00:00Z"})
    assert refused.value.why == "'oops' was given, and it is declared as amount money"
    assert refused.value.fix == "write it like 12.50"
    with pytest.raises(WrongType) as refused:  # what comes from the log may be anybody's secret
        CODEC.decode(value(amount="oops"))
    assert "oops" not in str(refused.value)


def test_rows_typed_by_hand_may_not_have_unknown_fields() -> None:
    row = {"payment_id": "p1", "card_id": "c1", "amount": "12.34", "at": "2026-11-03T15:00:00Z"}
    assert CODEC.read(row) == PAYMENT
    with pytest.raises(UnknownField) as refused:
        CODEC.read(row | {"cadr_id": "c"})
    assert refused.value.fix == "did you mean 'card_id'?"


def test_text_that_is_no_unicode_is_refused_before_it_is_sent() -> None:
    with pytest.raises(WrongType, match="no Unicode"):
        CODEC.encode(Payment("p1", "\ud800", money(1), AT))


def test_a_key_needs_all_its_columns() -> None:
    with pytest.raises(WrongType, match="2 key columns, 1 values"):
        Codec(All).key("DE")
