"""Decisions in the reference engine: the policy that stands when a row comes."""

from __future__ import annotations

from datetime import datetime

import pytest

import headrace as hr
from headrace.base.errors import UsageError


@hr.event(topic="payments", key="card_id", time="at")
class Payment:
    card_id: str
    amount: hr.Money
    at: datetime


def bank() -> hr.App:
    app = hr.App("bank")
    payments = app.stream(Payment, disorder="30 s")
    payments.decide("fraud", default="decline").named("fraud").to(app.topic("decisions"))
    payments.where("amount > 0").decide("limits").named("limits").to(app.topic("limited"))
    return app


def test_rows_go_by_the_policy_that_stands_when_they_come() -> None:
    large = hr.Rule(name="large", when="amount > 100", action="review")
    with hr.testing.run(bank()) as t:
        pay = lambda: t.send(Payment("c1", hr.money(500), t.time("10:00")))  # noqa: E731
        pay()
        assert t.policy("fraud", rules=[large]) == 0
        pay()
        assert t.policy("fraud", rules=[]) == 1
        assert t.policy("limits", rules=[large]) == 0
        pay()

        said = [(row["decision"], row["policy_seen"]) for row in t.read("decisions")]
        assert said == [("decline", ""), ("review", "fraud.policy/0@0"), ("allow", "fraud.policy/0@1")]
        assert [row["decision"] for row in t.read("limited")] == ["review", "review", "review"]
        assert (t.counts("fraud").received, t.counts("fraud").used) == (3, 3)
        with pytest.raises(UsageError, match="no stream is decided by the policy 'frauds'"):
            t.policy("frauds", rules=[])
