"""`headrace policy`: what decides, and how it is replaced."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Headrace
from tests.steps.boosted import booster

APP = """
from datetime import datetime

import headrace as hr


@hr.event(topic="{topic}", key="card_id", time="at", id="payment_id")
class Payment:
    payment_id: str
    card_id: str
    amount: hr.Money
    hour: int
    km: float
    times: int
    at: datetime


bank = hr.App("bank")
bank.stream(Payment, disorder="30 s").decide("{topic}").to(bank.topic("{topic}-said"))
"""
RULES = """
[thresholds]
review = 0.5
decline = 0.9

[[rule]]
name = "large"
when = "amount > 100"
action = "review"
"""


@pytest.fixture
def bank(headrace: Headrace, broker: object, topic: str, tmp_path: Path) -> Headrace:
    """The command in the directory of a bank that decides by the policy of the topic's name."""
    module = f"bank_{topic.replace('-', '_')}"
    (tmp_path / f"{module}.py").write_text(APP.format(topic=topic))
    (tmp_path / "headrace.toml").write_text(f'[apps]\nbank = "{module}"\n')
    (tmp_path / "rules.toml").write_text(RULES)
    booster().save_model(tmp_path / "fraud.txt")
    return lambda verb, *more: headrace("policy", verb, "bank", topic, *more)


def test_a_policy_is_published_shown_and_rolled_back(bank: Headrace, topic: str, tmp_path: Path) -> None:
    assert bank("show").out == "policy  none\n"
    said = bank("publish", "--rules", "rules.toml", "--model", "fraud.txt", "--note", "the first")
    assert (said.code, said.out) == (0, "")
    assert said.err == f"published as {topic}.policy/0@0; flows that run go by it from their next rows on\n"

    told = bank("show", "--json").json
    assert (told["rules"][0]["when"], told["thresholds"]) == ("amount > 100", {"review": 0.5, "decline": 0.9})
    assert told["features"] == ["amount", "hour", "km", "times"]
    lines = bank("show").out.splitlines()
    assert lines[0] == f"seen           {topic}.policy/0@0"
    assert lines[3:6] == [
        "thresholds     review from 0.5, decline from 0.9",
        "features       amount, hour, km, times",
        "name   when          action  reason  final",
    ]

    # when rules alone are replaced, the model stays
    (tmp_path / "rules.toml").write_text('[[rule]]\nname = "any"\nwhen = "true"\naction = "decline"\n')
    assert bank("publish", "--rules", "rules.toml", "--shadow", "--json").json == {"policy": topic, "offset": 1}
    assert bank("show", "--shadow", "--json").json["model_version"] == told["model_version"]
    assert bank("rollback", "--to", "1", "--json").json["offset"] == 2
    assert bank("withdraw", "--shadow").code == 0
    kinds = [(row["offset"], row["kind"], row["note"]) for row in bank("history", "--json").json]
    assert kinds == [
        (0, "active", "the first"),
        (1, "shadow", ""),
        (2, "active", "as at 1"),
        (3, "shadow", "taken away"),
    ]


def test_what_could_never_decide_is_refused_with_its_line(bank: Headrace, tmp_path: Path) -> None:
    (tmp_path / "rules.toml").write_text('\n[[rule]]\nname = "any"\nwhen = "amount >"\naction = "decline"\n')
    said = bank("publish", "--rules", "rules.toml")
    assert (said.code, "rules.toml:2" in said.err, "amount >" in said.err) == (2, True, True)
    (tmp_path / "fraud.txt").write_text((tmp_path / "fraud.txt").read_text()[:1_000])
    said = bank("publish", "--model", "fraud.txt")
    assert (said.code, "some of it may be missing" in said.err) == (2, True)
    said = bank("publish")
    assert (said.code, said.err.startswith("there is nothing to publish [usage]")) == (2, True)
    assert bank("history").err == "nothing was published yet\n"
