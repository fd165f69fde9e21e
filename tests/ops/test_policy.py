"""c.policy: published to the real broker, checked before, looked at and taken back."""

from __future__ import annotations

import random
from datetime import datetime
from pathlib import Path

import pytest

import headrace as hr
from headrace.base.errors import BadPolicy, UnknownColumn, UsageError
from headrace.base.settings import Settings
from headrace.log import policy as log
from headrace.log.broker import Broker
from tests.spark.flowing import until

LARGE = hr.Rule(name="large", when="amount > 100", action="review")
HUGE = hr.Rule(name="huge", when="amount > 1000", action="decline")


def app_on(topic: str) -> hr.App:
    @hr.event(topic=topic, key="card_id", time="at", id="payment_id")
    class Payment:
        payment_id: str
        card_id: str
        amount: hr.Money
        at: datetime

    app = hr.App("bank")
    app.stream(Payment, disorder="30 s").decide(topic, default="decline").to(app.topic(f"{topic}-said"))
    return app


def test_a_policy_is_published_revised_and_taken_back(settings: Settings, broker: Broker, topic: str) -> None:
    with hr.connect(app_on(topic), settings) as c:
        fraud = c.policy(topic)
        row = {"amount": hr.money(500)}
        assert fraud.current().decide(row).reasons == ("nothing is published",)

        # when it is published in steps, with a shadow and a record that is none between them
        first = fraud.publish(rules=[LARGE], note="the first")
        tried = fraud.publish(rules=[LARGE, HUGE], shadow=True)
        log.publish(broker, topic, "nonsense", shadow=False)
        said = fraud.current().decide(row)
        assert (said.decision, said.reasons, said.policy_seen) == ("review", ("large",), f"{topic}.policy/0@{first}")
        assert f"{topic}.policy/0@{tried}" in (said.shadow or "")

        # then the shadow comes into force, and another client sees the same
        last = fraud.rollback(to=tried)
        with hr.connect(app_on(topic), settings) as other:
            stands = other.policy(topic).current()
        assert stands.active is not None
        assert stands.active.policy == hr.Policy(rules=[LARGE, HUGE])
        assert fraud.at(first).decide(row | {"amount": hr.money(5_000)}).decision == "review"

        fraud.withdraw(shadow=True)
        assert fraud.current().shadow is None
        fraud.withdraw()
        assert fraud.current().active is None
        told = [(one.offset, one.shadow, one.policy is None, one.note, one.refused) for one in fraud.history()]
        assert told == [
            (first, False, False, "the first", ""),
            (tried, True, False, "", ""),
            (tried + 1, False, True, "", "this record is no policy"),
            (last, False, False, f"as at {tried}", ""),
            (last + 1, True, True, "", ""),
            (last + 2, False, True, "", ""),
        ]


def test_who_follows_is_told_of_the_next_policy_without_asking(settings: Settings, topic: str) -> None:
    with hr.connect(app_on(topic), settings) as c, hr.connect(app_on(topic), settings) as other:
        stands = c.policy(topic).follow()
        assert stands().active is None

        offset = other.policy(topic).publish(rules=[HUGE])

        until(lambda: stands().active)
        assert stands().decide({"amount": hr.money(5_000)}).policy_seen == f"{topic}.policy/0@{offset}"


def test_what_could_not_decide_is_never_published(settings: Settings, topic: str, tmp_path: Path) -> None:
    (tmp_path / "rules.toml").write_text('[[rule]]\nname = "x"\nwhen = "amunt > 1"\naction = "review"\n')
    with hr.connect(app_on(topic), settings) as c:
        with pytest.raises(UnknownColumn, match="there is no column 'amunt'") as refused:
            c.policy(topic).publish(rules=tmp_path / "rules.toml")
        assert str(refused.value.where).endswith("rules.toml:1")
        with pytest.raises(BadPolicy, match="thresholds without a model"):
            c.policy(topic).publish(thresholds={"review": 0.5})
        with pytest.raises(UsageError, match="a whole policy and parts of one"):
            c.policy(topic).publish(hr.Policy(), rules=[LARGE])
        with pytest.raises(UsageError, match="nothing was published at the offset 0"):
            c.policy(topic).rollback(to=0)
        with pytest.raises(UsageError, match="bank decides nothing by the policy 'other'"):
            c.policy("other")
        assert c.policy(topic).history() == []


def test_a_policy_of_megabytes_goes_through(settings: Settings, broker: Broker, topic: str) -> None:
    with hr.connect(app_on(topic), settings) as c:
        chance = random.Random(1)
        text = hr.Policy(rules=[HUGE]).as_text(chance.randbytes(1_500_000).hex())
        log.publish(broker, topic, text, shadow=False)
        stands = c.policy(topic).current().active
        assert stands is not None
        assert stands.policy.rules == (HUGE,)
