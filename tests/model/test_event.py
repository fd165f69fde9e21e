"""Events: declared once, valid however they are made."""

from __future__ import annotations

import copy
import pickle
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from headrace.base.errors import BadEvent, DataError, MissingField, MoneyOverflow, UnknownField, WrongType
from headrace.base.money import Money, money
from headrace.expr.types import BOOL, BYTES, FLOAT, INT, MONEY, TEXT, TIME, Column, list_of
from headrace.model.event import event, event_type

AT = datetime(2026, 11, 3, 15, 0, 0, 250_000, tzinfo=UTC)


@event(topic="payments", key="card_id", time="at", id="payment_id")
class Payment:
    """A card payment as the terminal reported it."""

    payment_id: str
    card_id: str
    amount: Money
    at: datetime
    country: str = "DE"
    note: str | None = None

    @property
    def large(self) -> bool:
        return self.amount > 100


def payment(**changed: Any) -> Any:
    return Payment(**{"payment_id": "p1", "card_id": "c1", "amount": money("12.34"), "at": AT} | changed)


def test_fields_may_be_given_by_place_or_by_name() -> None:
    assert Payment("p1", "c1", money("12.34"), AT) == payment()
    assert payment().country == "DE"
    assert payment(note="x").note == "x"


def test_events_are_equal_by_value_hashable_and_printed_in_full() -> None:
    assert payment() == payment()
    assert payment() != payment(country="FR")
    assert len({payment(), payment()}) == 1
    assert repr(payment()).startswith("Payment(payment_id='p1', card_id='c1', amount=Decimal('12.34'), at=")


def test_events_cannot_change() -> None:
    with pytest.raises(AttributeError):
        payment().country = "FR"


def test_events_keep_their_methods_and_survive_pickle_and_copy() -> None:
    assert payment(amount=money(101)).large
    assert pickle.loads(pickle.dumps(payment())) == payment()
    assert copy.deepcopy(payment()) == payment()


def test_the_class_is_described() -> None:
    described = event_type(Payment)
    assert (described.name, described.topic, described.key) == ("Payment", "payments", ("card_id",))
    assert (described.time, described.id) == ("at", "payment_id")
    assert described.cls is Payment
    assert described.doc == "A card payment as the terminal reported it."
    assert described.columns == (
        Column("payment_id", TEXT),
        Column("card_id", TEXT),
        Column("amount", MONEY),
        Column("at", TIME),
        Column("country", TEXT),
        Column("note", TEXT, nullable=True),
    )
    assert described.where is not None
    assert described.where.file == __file__
    assert "@event" in described.where.source


def test_every_kind_of_column() -> None:
    @event(topic="all", key="text, number")
    class All:
        text: str
        number: int
        ratio: float
        yes: bool
        raw: bytes
        times: list[datetime]
        costs: list[Money] | None

    assert [column.type for column in event_type(All).columns] == [
        TEXT, INT, FLOAT, BOOL, BYTES, list_of(TIME), list_of(MONEY),
    ]  # fmt: skip
    assert event_type(All).key == ("text", "number")
    made = All("a", 1, 2, True, b"x", (AT,), None)
    assert (made.ratio, type(made.ratio), made.times) == (2.0, float, [AT])


def test_the_schema_changes_with_the_columns_and_only_then() -> None:
    def declared(kind: Any) -> str:
        return event_type(event(topic="t")(type("X", (), {"__annotations__": {"a": kind}}))).schema

    assert declared(int) == declared(int)
    assert len({declared(int), declared(str), declared(int | None)}) == 3


def test_times_are_kept_in_utc() -> None:
    berlin = AT.astimezone(timezone(timedelta(hours=1)))
    assert payment(at=berlin).at.tzinfo is UTC
    assert payment(at=berlin) == payment()


def test_money_has_two_digits() -> None:
    assert str(payment(amount=Decimal("12.5")).amount) == "12.50"


@pytest.mark.parametrize(
    ("changed", "error", "says"),
    [
        ({"card_id": 7}, WrongType, "Payment.card_id: 7 is not text"),
        ({"card_id": None}, WrongType, "Payment.card_id: None is not text"),
        ({"amount": 12.34}, WrongType, "Payment.amount: 12.34 is not money"),
        ({"amount": "12.34"}, WrongType, "Payment.amount: '12.34' is not money"),
        ({"amount": Decimal("0.001")}, WrongType, "more than two digits"),
        ({"amount": Decimal("NaN")}, WrongType, "NaN is not money"),
        ({"amount": Decimal("sNaN")}, WrongType, "is not money"),
        ({"amount": Decimal("Infinity")}, WrongType, "is not money"),
        ({"amount": Decimal("1e16")}, MoneyOverflow, "too large"),
        ({"at": datetime(2026, 11, 3)}, WrongType, "has no time zone"),
        ({"at": "2026-11-03"}, WrongType, "is not a datetime"),
        ({"crad_id": "c1"}, UnknownField, "Payment has no field 'crad_id'"),
    ],
)
def test_wrong_values_are_refused_where_they_are_given(
    changed: dict[str, Any], error: type[DataError], says: str
) -> None:
    with pytest.raises(error) as refused:
        payment(**changed)
    assert says in refused.value.what
    assert refused.value.where is not None
    assert refused.value.where.file == __file__


def test_an_unknown_field_names_the_near_one() -> None:
    with pytest.raises(UnknownField) as refused:
        payment(cuontry="DE")
    assert refused.value.fix == "did you mean 'country'?"


def test_missing_extra_and_doubled_fields_are_named() -> None:
    with pytest.raises(MissingField, match="needs the field 'amount'"):
        Payment("p1", "c1", at=AT)
    with pytest.raises(UnknownField, match="has 6 fields, not 7"):
        Payment("p1", "c1", money(1), AT, "DE", None, "more")
    with pytest.raises(UnknownField, match="given twice"):
        Payment("p1", payment_id="p1")


@pytest.mark.parametrize(
    ("kind", "value", "says"),
    [
        (int, True, "is not an int"),
        (int, 2**63, "64 bits"),
        (float, float("nan"), "finite"),
        (float, "1", "is not a float"),
        (bool, 1, "is not a bool"),
        (bytes, "x", "is not bytes"),
        (list[int], 1, "is not a list of int"),
        (list[int], ["1"], "is not an int"),
    ],
)
def test_each_type_refuses_what_only_looks_like_it(kind: Any, value: Any, says: str) -> None:
    one = event(topic="t")(type("One", (), {"__annotations__": {"field": kind}}))
    with pytest.raises(WrongType, match=says):
        one(value)


def declare(annotations: dict[str, Any], **how: str) -> type:
    return event(**how)(type("Broken", (), {"__annotations__": annotations}))


@pytest.mark.parametrize(
    ("annotations", "how", "says"),
    [
        ({}, {}, "has no fields"),
        ({"a": dict}, {}, "Broken.a cannot be of type dict"),
        ({"a": Decimal}, {}, "cannot be of type Decimal"),
        ({"a": int | str}, {}, "cannot be of type"),
        ({"a": list[list[int]]}, {}, "cannot be of type"),
        ({"_a": int}, {}, "cannot have a field '_a'"),
        ({"window_start": int}, {}, "cannot have a field 'window_start'"),
        ({"revision": int}, {}, "cannot have a field 'revision'"),
        ({"a": int}, {"topic": "a b"}, "'a b' cannot name a topic"),
        ({"card": str}, {"key": "crad"}, "has no field 'crad' to be its key"),
        ({"a": str}, {"key": "a, a"}, "names a key twice"),
        ({"a": str | None}, {"key": "a"}, "is its key and may be None"),
        ({"a": str | None}, {"id": "a"}, "is its id and may be None"),
        ({"a": float}, {"key": "a"}, "is float and cannot be its key"),
        ({"a": str}, {"time": "a"}, "is text and cannot be its time"),
        ({"a": datetime | None}, {"time": "a"}, "is its time and may be None"),
        ({"a": "Nowhere"}, {}, "of a type nobody knows"),
    ],
)
def test_declarations_that_could_never_work_are_refused(
    annotations: dict[str, Any], how: dict[str, str], says: str
) -> None:
    with pytest.raises(BadEvent) as refused:
        declare(annotations, **how)
    assert says in refused.value.what
    assert refused.value.where is not None
    assert refused.value.where.file == __file__


def test_defaults_must_fit_and_come_last() -> None:
    with pytest.raises(BadEvent, match="default of"):
        event(type("Broken", (), {"__annotations__": {"a": int}, "a": "1"}))
    with pytest.raises(BadEvent, match="cannot be declared"):
        event(type("Broken", (), {"__annotations__": {"a": int, "b": int}, "a": 1}))


def test_events_have_no_base_class() -> None:
    with pytest.raises(BadEvent, match="has a base class"):

        class More(Payment):
            extra: str

    with pytest.raises(BadEvent, match="has a base class"):
        event(type("More", (Exception,), {"__annotations__": {"a": int}}))


def test_a_bare_event_has_no_topic() -> None:
    @event
    class Plain:
        a: int

    assert event_type(Plain).topic == ""
    assert Plain(1).a == 1


def test_what_is_no_event_is_said_so() -> None:
    with pytest.raises(BadEvent, match="int is no event"):
        event_type(int)


def test_a_misspelt_argument_of_event_is_named_at_its_line() -> None:
    with pytest.raises(BadEvent, match=r"@hr\.event takes no 'topik'") as refused:
        event(topik="payments")  # type: ignore[call-overload]
    assert refused.value.fix == "did you mean topic?"
    assert refused.value.where is not None
    assert refused.value.where.source == 'event(topik="payments")  # type: ignore[call-overload]'
