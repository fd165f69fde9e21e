"""Declaring a service: what is missing is said where it was declared."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

import headrace as hr
from headrace.base.errors import BadApp, BadCall, BadDuration, BadStep, UnknownColumn


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
