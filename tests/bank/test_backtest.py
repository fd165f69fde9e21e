"""Rules on trial: money caught, payments stopped wrongly, and what was stopped anyway."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

import headrace as hr
from bank.backtest import Tried, any_holds, table, take
from bank.decide import decide, vectors
from bank.decided import Decided
from bank.events import Label
from bank.policy import RULES, policy
from headrace.base.settings import Settings
from headrace.steps.policy import Judge
from tests.bank.deciding import START, lived, store
from tests.bank.saying import Said

SINCE = ("--from", START.isoformat())


def row(id: str, amount: str, decision: str, *, pin_ok: bool = True) -> dict[str, Any]:
    return {"payment_id": id, "amount": Decimal(amount), "decision": decision, "pin_ok": pin_ok}


ROWS = [
    row("a", "100", "decline"),
    row("b", "40", "allow"),
    row("c", "70", "allow"),
    row("d", "90", "review"),
    row("e", "80", "decline", pin_ok=False),
]


def large(frauds: set[str]) -> Tried:
    """From 70 on, beside a rule for all from 90 on."""
    found = Tried(rule="large", action="decline")
    take([(found, lambda row: row["amount"] >= 70)], ROWS, frauds, lambda row: row["amount"] >= 90)
    return found


def test_a_rule_is_measured_against_what_became_known() -> None:
    found = large({"a", "b", "c"})
    assert (found.payments, found.frauds) == (4, 2)
    assert (found.caught, found.new) == (Decimal(170), Decimal(70))  # c was let through
    assert (found.wrongly, found.newly_wrongly) == (1, 0)  # d was under review anyway; e is nobody's payment
    assert (found.overlap, found.stopped_anyway) == (0.5, 0.75)
    assert (Tried(rule="never").overlap, Tried(rule="never").stopped_anyway) == (0.0, 0.0)


def test_the_table_has_a_line_a_rule() -> None:
    assert table([large({"a"}), Tried(rule="as decided")]).splitlines() == [
        "rule        action   payments  frauds  caught  new  wrongly  newly wrongly  overlap  stopped anyway",
        "large       decline         4       1     100    0        2              1      50%             75%",
        "as decided                  0       0       0    0        0              0       0%              0%",
    ]


def judged(policy: hr.Policy) -> Judge:
    return Judge(policy, vectors.columns)


def test_a_rule_that_cannot_be_computed_takes_nothing_and_one_that_allows_does() -> None:
    misfit = hr.Rule(name="misfit", when="times_1h * 9223372036854775807 > 0", action="decline")
    known = hr.Rule(name="known", when="times_1h = 2", action="allow")
    one = {"times_1h": 2}
    assert judged(hr.Policy(rules=[misfit])).decide(one).reasons  # it has a reason, and allows
    assert not any_holds(judged, [misfit])(one)
    assert any_holds(judged, [misfit])({"times_1h": 1})
    assert any_holds(judged, [misfit, known])(one)
    assert not any_holds(judged, [])(one)


@pytest.fixture
def history(desk: Settings) -> list[dict[str, Any]]:
    """Ten days in the lake, by the bank's own policy, which stands; a label was taken back since."""
    frauds = [one for one in lived().made if one.fraud]
    known = START + timedelta(days=11)
    labels = [one.label(known) for one in frauds]
    labels.append(structs.replace(labels[0], fraud=0, at=known + timedelta(hours=1)))
    store(desk.lake, "decisions", Decided, lived().rows)
    store(desk.lake, "labels", Label, [structs.asdict(label) for label in labels])
    with hr.connect(decide, desk) as client:
        client.policy("fraud").publish(policy())
    bad = {one.payment.payment_id for one in frauds[1:]}
    return [row | {"bad": row["payment_id"] in bad} for row in lived().rows]


def money(rows: list[dict[str, Any]]) -> Decimal:
    return sum((row["amount"] for row in rows), Decimal(0))


def counted(rows: list[dict[str, Any]], stopped: Any) -> dict[str, Any]:
    """What a trial has to say of payments that are stopped."""
    taken = [row for row in rows if stopped(row)]
    free = [row for row in taken if row["decision"] == "allow"]
    return {
        "payments": len(taken),
        "frauds": sum(row["bad"] for row in taken),
        "caught": str(money([row for row in taken if row["bad"]])),
        "new": str(money([row for row in free if row["bad"]])),
        "wrongly": sum(row["pin_ok"] and not row["bad"] for row in taken),
        "newly_wrongly": sum(row["pin_ok"] and not row["bad"] for row in free),
        "stopped_anyway": round(1 - len(free) / len(taken), 4),
    }


def test_the_policy_that_stands_would_decide_as_it_did(
    history: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    said = Said(capsys, "rules", "test", str(RULES), *SINCE, "--json")
    assert said.code == 0
    assert said.err.splitlines() == [f"tried on {len(history):,} of {len(history):,} payments"]
    *rules, together, decided = said.json
    assert [one["rule"] for one in rules] == [rule.name for rule in hr.Policy.read(RULES).rules]
    assert {one["overlap"] for one in rules if one["payments"]} == {1.0}
    wrong_pin = counted(history, lambda row: "wrong PIN" in row["reasons"])
    assert wrong_pin.items() <= rules[0].items()
    assert counted(history, lambda row: row["decision"] != "allow").items() <= decided.items()
    assert (together["rule"], decided["rule"]) == ("all of them", "as decided")
    assert {**together, "rule": ""} == {**decided, "rule": ""}
    assert decided["action"] is None
    assert 0 < decided["overlap"] < decided["stopped_anyway"] == 1.0  # some are the model's own


def test_other_thresholds_and_a_new_rule_are_tried_as_they_would_decide(
    history: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "rules.toml"
    file.write_text(
        RULES.read_text().replace("review = 0.5", "review = 0.05")
        + '[[rule]]\nname = "far"\nwhen = "km > 50"\naction = "review"\n'
    )
    *_, far, together, _ = Said(capsys, "rules", "test", str(file), *SINCE, "--json").json
    assert counted(history, lambda row: (row["km"] or 0) > 50).items() <= far.items()
    assert 0 < far["overlap"] < 1
    stopped = counted(history, lambda row: row["decision"] != "allow" or row["score"] >= 0.05 or (row["km"] or 0) > 50)
    assert stopped.items() <= together.items()
    assert together["newly_wrongly"] > far["newly_wrongly"] > 0

    lines = Said(capsys, "rules", "test", str(file), *SINCE).out.splitlines()
    assert lines[0].split()[:3] == ["rule", "action", "payments"]
    assert lines[-3].split()[:3] == ["far", "review", f"{far['payments']:,}"]
    assert lines[-2].split()[3] == f"{together['payments']:,}"


def test_a_trial_goes_through_a_long_history_in_pieces(
    history: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "all.toml"
    file.write_text('[[rule]]\nname = "everything"\nwhen = "amount > 0"\naction = "decline"\n')
    monkeypatch.setattr("bank.backtest.PIECE", 1_000)
    said = Said(capsys, "rules", "test", str(file), *SINCE, "--json")
    assert counted(history, lambda _: True).items() <= said.json[0].items()
    assert len(said.err.splitlines()) == -(-len(history) // 1_000) > 2
    assert said.err.splitlines()[-1] == f"tried on {len(history):,} of {len(history):,} payments"


def test_a_time_without_payments_is_told(
    history: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    last: datetime = max(row["at"] for row in history)
    said = Said(capsys, "rules", "test", str(RULES), "--from", f"{last + timedelta(seconds=1):%FT%T}")
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith(f"no payment was decided since {last + timedelta(seconds=1):%F %T} UTC [failed]\n")
    assert f"the last was at {last:%F %T} UTC" in said.err
    assert "--from '-7 d'" in said.err
    ages = datetime.now(START.tzinfo) - START
    assert Said(capsys, "rules", "test", str(RULES), "--from", f"-{ages.days + 1} d", "--json").json[-1]["payments"] > 0


def test_without_a_policy_that_stands_the_rules_are_tried_alone(
    desk: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    store(desk.lake, "decisions", Decided, lived().rows)  # and not one label
    said = Said(capsys, "rules", "test", str(RULES), *SINCE, "--json")
    assert said.err.splitlines()[0] == "no model stands: the thresholds are not tried"
    together, decided = said.json[-2:]
    assert (together["overlap"], together["frauds"]) == (0.0, 0)
    assert 0 < together["payments"] < decided["payments"]
