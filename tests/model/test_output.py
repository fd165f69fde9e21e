"""Outputs to stores: whose key they have, and what is refused at the user's line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import headrace as hr
from headrace.base.errors import DeclarationError
from headrace.model.output import beside
from tests.reference.shop import Order
from tests.shapes import Payment, Reading


def declared() -> tuple[hr.App, hr.Stream, hr.Table]:
    app = hr.App("bank")
    return app, app.stream(Payment, disorder="30 s"), app.table(Order)


def test_a_stream_has_the_key_that_the_store_says() -> None:
    app, payments, _ = declared()
    assert payments.to(hr.postgres("pay", key="payment_id")) is payments
    payments.to(hr.redis("last:{card_id}", ttl="1 d"))
    payments.to(hr.lake("pay"))
    assert [[name for name, _ in output.key] for output in app.outputs] == [["payment_id"], ["card_id"], []]


def test_a_view_gives_the_store_its_own_key() -> None:
    app, _, orders = declared()
    orders.to(hr.postgres("orders"))
    orders.to(hr.lake("orders", key="order_id"))
    orders.to(hr.redis("order:{order_id}"))
    assert [output.target.key for output in app.outputs] == [("order_id",)] * 3  # type: ignore[union-attr]
    assert {output.form for output in app.outputs} == {"upserts"}


def twice(orders: hr.Table) -> None:
    orders.to(hr.postgres("t"))
    orders.group_by("user_id").agg(n=hr.count()).to(hr.postgres("t"))


REFUSED: dict[str, tuple[Callable[[hr.Stream, hr.Table], Any], str, str]] = {
    "a key beside the store's": (
        lambda p, _: p.to(hr.postgres("t", key="card_id"), key="at"),
        "has its own key",
        "leave key",
    ),
    "a key that is no column": (lambda p, _: p.to(hr.postgres("t", key="card")), "no such column", ".select"),
    "a pattern of no column": (lambda p, _: p.to(hr.redis("x:{card}")), "no such column", ".select"),
    "a partition by no time": (
        lambda p, _: p.to(hr.lake("t", partition="day(country)")),
        "partitioned by day",
        "day(at)",
    ),
    "another key than the table's": (
        lambda _, o: o.to(hr.postgres("t", key="user_id")),
        "the table has order_id",
        "leave key",
    ),
    "keys of a table by another column": (
        lambda _, o: o.to(hr.redis("x:{amount}")),
        "the table has order_id",
        "{order_id}",
    ),
    "files of a table": (lambda _, o: o.to(hr.files("t")), "cannot hold a table", 'hr.lake("t")'),
    "changes in a store": (lambda _, o: o.to(hr.lake("t"), as_changes=True), "not changes", ".changes()"),
    "two tables of one name": (lambda _, o: twice(o), "declared twice, differently", "reuse"),
    "one table under two names": (
        lambda p, _: (p.to(hr.postgres("t", key="card_id")), p.to(hr.postgres("public.t", key="card_id"))),
        "postgres:public.t is a place of postgres:t too",
        "another name",
    ),
    "keys that begin with those of another": (
        lambda p, _: (p.to(hr.redis("x:{card_id}")), p.to(hr.redis("x:last:{card_id}"))),
        "redis:x:last:{card_id} is a place of redis:x:{card_id} too",
        "another name",
    ),
    "a guarantee that is none": (lambda p, _: p.to(hr.lake("t"), guarantee="twice"), "is not known", "exactly-once"),
    "a store that is none": (lambda p, _: p.to("postgres"), "is no sink", "hr.postgres"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_b4_is_refused_at_its_line(case: str) -> None:
    declare, what, fix = REFUSED[case]
    _, payments, orders = declared()
    with pytest.raises(DeclarationError) as caught:
        declare(payments, orders)
    assert what in caught.value.what
    assert fix in caught.value.fix
    assert "test_output.py" in str(caught.value.where)


def test_stores_of_other_kinds_or_words_do_not_meet() -> None:
    app, payments, _ = declared()
    payments.to(hr.postgres("t", key="card_id"))
    payments.to(hr.postgres("sales.t", key="card_id"))
    payments.to(hr.lake("t"))
    payments.to(hr.redis("x:{card_id}"))
    payments.to(hr.redis("x-last:{card_id}"))
    assert len(app.outputs) == 5


def test_what_was_declared_differently_is_said_in_words() -> None:
    app, payments, _ = declared()
    payments.to(hr.redis("x:{card_id}", ttl="1 d"))
    with pytest.raises(DeclarationError) as caught:
        payments.to(hr.redis("x:{card_id}"))
    assert caught.value.why == "ttl was 1 d, and is left out here"
    app.topic("alerts", partitions=2)
    with pytest.raises(DeclarationError) as caught:
        app.topic("alerts", partitions=3, compact=True)
    assert caught.value.why == "partitions was 2, and is 3 here; compact was left out, and is True here"


def test_b4_a_key_that_may_be_null_is_refused() -> None:
    readings = hr.App("site").stream(Reading, disorder="0 s")
    with pytest.raises(DeclarationError, match="note may be null"):
        readings.to(hr.postgres("t", key="note"))


@pytest.mark.parametrize(
    ("sink", "name"),
    [
        (hr.postgres("card_spend", key="a"), "card_spend_replay_20261115"),
        (hr.lake("pay"), "pay_replay_20261115"),
        (hr.redis("spend:{a}"), "replay-20261115.spend:{a}"),
        (hr.App("bank").topic("alerts"), "alerts.replay-20261115"),
    ],
)
def test_another_version_has_a_place_beside(sink: Any, name: str) -> None:
    found = beside(sink, "replay-20261115")
    assert found.name == name
    assert getattr(found, "key", None) == getattr(sink, "key", None)
