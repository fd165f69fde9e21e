"""stream.decide: the columns it adds, and what it refuses."""

from __future__ import annotations

from datetime import datetime

import pytest

import headrace as hr
from headrace.base.errors import BadCall, BadStep, BadTopic


@hr.event(topic="payments", key="card_id", time="at")
class Payment:
    card_id: str
    amount: hr.Money
    at: datetime


def test_a_decision_stands_behind_the_columns_of_the_row() -> None:
    decided = hr.App("bank").stream(Payment, disorder="30 s").decide("fraud")
    assert [str(column) for column in decided.columns] == [
        *("card_id text", "amount money", "at time", "decision text", "reasons list of text", "score float?"),
        *("rules_version text", "model_version text", "policy_seen text", "shadow text?"),
    ]
    assert decided.key[0][0] == "card_id"


def test_what_cannot_be_decided_is_refused() -> None:
    payments = hr.App("bank").stream(Payment, disorder="30 s")
    with pytest.raises(BadStep, match="default='block' is no decision"):
        payments.decide("fraud", default="block")
    with pytest.raises(BadStep, match="the column 'score' is taken"):
        payments.select("*, 1 as score").decide("fraud")
    with pytest.raises(BadStep, match="the column 'decision' is taken"):
        payments.decide("fraud").decide("more")
    with pytest.raises(BadTopic):
        payments.decide("no topic")
    with pytest.raises(BadCall):
        payments.decide()
