"""Declaring a service: what is missing is said where it was declared."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

import headrace as hr
from headrace.base.errors import BadApp, BadCall, BadDuration, BadStep, UnknownColumn
from headrace.plan import text
from headrace.plan.plan import build


@hr.event(topic="payments", key="card_id", time="at", id="payment_id")
class Payment:
    payment_id: str
    card_id: str
    amount: hr.Money
    at: datetime


@hr.event(topic="labels", key="payment_id", time="at")
class Label:
    payment_id: str
    fraud: int
    by: str
    at: datetime


@hr.event(topic="pings", key="n")
class Ping:
    n: int


@hr.event(topic="cards", key="card_id", time="at")
class Card:
    card_id: str
    at: datetime


@hr.event(topic="seats", key="row, place", time="at")
class Seat:
    row: str
    place: str
    at: datetime


@hr.event(topic="years", key="year", time="at")
class Year:
    year: int
    at: datetime


OTHER = hr.App("other")


def declare(**how: Any) -> hr.App:
    app = hr.App("bank")
    given: dict[str, Any] = {"ask": Payment, "answer": app.topic("raw"), "default": {"decision": "review"}}
    app.service("decide", **(given | how))
    return app


def test_a_service_and_the_topics_it_needs() -> None:
    app = declare(alerts=hr.App("other").topic("alerts"), label=Label, checks={"amount > 0": "above zero"})
    (service,) = app.services
    assert service.deadline == timedelta(milliseconds=80)
    assert [topic.name for topic in app.topics] == [
        "payments", "raw", "payments.decide.degraded", "alerts", "payments.decide.notes", "labels",
    ]  # fmt: skip


def test_a_known_column_names_a_key_of_a_table_and_is_no_part_of_the_flow() -> None:
    def flow(*, known: bool) -> hr.App:
        app = hr.App("bank")
        raw = app.topic("raw")
        app.stream(Payment, disorder="1 s").select("payment_id, 'allow' as decision").to(raw)
        tables = {"card_id": app.table(Card, history="1 d")} if known else {}
        app.service("decide", ask=Payment, answer=raw, default={"decision": "review"}, known=tables)
        return app

    knowing = flow(known=True)
    (known,) = knowing.services[0].known
    assert (known.column, known.table.name) == ("card_id", "cards")
    (cards,) = [topic for topic in knowing.services[0].topics if topic.name == "cards"]
    assert (cards.compact, cards) == (True, next(topic for topic in knowing.topics if topic.name == "cards"))
    assert [text.fingerprint(one) for one in build(knowing).flows] == [
        text.fingerprint(one) for one in build(flow(known=False)).flows
    ]


@pytest.mark.parametrize(
    ("how", "error", "says"),
    [
        ({"ask": Ping}, BadApp, "has no id"),
        ({"default": {}}, BadApp, "no decision"),
        ({"deadline": "0 s"}, BadApp, "deadline is nothing"),
        ({"deadline": "soon"}, BadDuration, "soon"),
        ({"most": 0}, BadApp, "most=0"),
        ({"queue": True}, BadApp, "queue=True"),
        ({"checks": {"amont > 0": "above zero"}}, UnknownColumn, "amont"),
        ({"checks": {"amount + 1": "above zero"}}, BadStep, "not a condition"),
        ({"known": {"card": OTHER.table(Card)}}, BadApp, "has no such column"),
        ({"known": {"card_id": Card}}, BadApp, "no table of a topic"),
        ({"known": {"card_id": OTHER.static(Card, [])}}, BadApp, "no table of a topic"),
        ({"known": {"card_id": OTHER.table(Seat)}}, BadApp, "the key is row, place"),
        ({"known": {"card_id": OTHER.table(Year)}}, BadApp, "cannot be a key of years"),
        ({"known": {"amount": OTHER.table(Card)}}, BadApp, "it is money"),
        ({"known": {"card_id": OTHER.table(Card, name="changes", changes=True)}}, BadApp, "changes, and name no key"),
        ({"known": {"card_id": OTHER.table(Card, name="living", ttl="30 d")}}, BadApp, "go by themselves"),
        ({"label": Label}, BadApp, "cannot be what people label with"),
        ({"colour": "red"}, BadCall, "colour"),
    ],
)
def test_what_could_never_serve_is_refused_at_the_users_line(how: Any, error: Any, says: str) -> None:
    with pytest.raises(error) as refused:
        declare(**how)
    assert says in str(refused.value)
    assert "test_service.py" in str(refused.value)


def test_a_name_is_a_path_of_its_own() -> None:
    app = declare()
    with pytest.raises(BadApp):
        app.service("decide", ask=Payment, answer=app.topic("raw"), default={"decision": "review"})
    with pytest.raises(BadApp):
        app.service("no/path", ask=Payment, answer=app.topic("raw"), default={"decision": "review"})
