"""What a policy says of a row: the strictest action of all that hold, with the reasons in their order."""

from __future__ import annotations

import json
from typing import Any

import headrace as hr
from headrace.expr.types import BOOL, FLOAT, INT, MONEY, Column
from headrace.steps.policy import Decision, Judge, Standing
from headrace.steps.trees import raised_by, score
from tests.steps.boosted import model

COLUMNS = (Column("amount", MONEY), Column("hour", INT, True), Column("km", FLOAT, True), Column("times", BOOL))
ROW = {"amount": hr.money("120"), "hour": 3, "km": 60.0, "times": True}


def rule(name: str, when: str, action: Any, **more: Any) -> hr.Rule:
    return hr.Rule(name=name, when=when, action=action, **more)


def judged(*rules: hr.Rule, row: dict[str, Any] = ROW, **more: Any) -> Decision:
    return Judge(hr.Policy(rules=rules, **more), COLUMNS, "p/0@1").decide(row)


def test_the_strictest_action_wins_and_all_reasons_are_told_in_order() -> None:
    said = judged(
        rule("large", "amount > 100", "review", reason="a large amount"),
        rule("small", "amount < 100", "decline"),
        rule("far", "km > 50", "decline"),
        rule("fine", "hour = 3", "allow"),
    )
    assert (said.decision, said.reasons) == ("decline", ("a large amount", "far", "fine"))
    assert said.policy_seen == "p/0@1"


def test_a_final_rule_that_holds_ends_the_asking_for_the_model_too() -> None:
    known = rule("known", "hour = 3", "allow", final=True)
    far = rule("far", "km > 50", "decline")
    scored = {"model": model(), "thresholds": {"decline": 0.0}}

    said = judged(known, far, **scored)
    assert (said.decision, said.reasons, said.score is None) == ("allow", ("known",), False)
    # What was asked before it stands; one that does not hold ends nothing.
    assert judged(far, known, **scored).decision == "decline"
    assert judged(rule("known", "hour = 4", "allow", final=True), far).decision == "decline"


def test_without_a_rule_that_holds_the_decision_is_allow() -> None:
    assert (judged().decision, judged().reasons) == ("allow", ())
    assert judged(rule("far", "km > 500", "decline")).decision == "allow"


def test_a_condition_that_is_null_does_not_hold_nor_does_one_that_is_not_there() -> None:
    far = rule("far", "km > 50 or km is null and hour / 0 > 1", "decline")
    assert judged(far, row=ROW | {"km": None}).decision == "allow"
    assert judged(far, row={"amount": hr.money(1)}).decision == "allow"


def test_a_condition_that_does_not_fit_does_not_hold_and_says_so() -> None:
    said = judged(rule("over", "hour * 9223372036854775807 > 0", "decline"), rule("far", "km > 50", "review"))
    assert said.decision == "review"
    assert said.reasons == ("over: the result of hour * 9223372036854775807 does not fit int", "far")


def test_the_score_reaches_the_strictest_threshold_it_can() -> None:
    asked = [120.0, 3.0, 60.0, 1.0]
    exact, raised = score(model(), asked), ", ".join(raised_by(model(), asked))
    for thresholds, decision, reasons in [
        ({"review": exact, "decline": 1.1}, "review", (f"model: {exact:.4f} >= {exact:g}, raised by {raised}",)),
        ({"review": 0.0, "decline": 0.0}, "decline", (f"model: {exact:.4f} >= 0, raised by {raised}",)),
        ({"decline": 1.1}, "allow", ()),
    ]:
        said = judged(model=model(), thresholds=thresholds)
        assert (said.decision, said.reasons, said.score) == (decision, reasons, exact)
    # No value: as LightGBM takes it, not a number.
    nothing = judged(row={}, model=model(), thresholds={"decline": 1.1})
    assert nothing.score == score(model(), [float("nan")] * 4)


def test_rules_alone_can_be_asked() -> None:
    policy = hr.Policy(rules=[rule("far", "km > 50", "review")], model=model(), thresholds={"decline": 0.0})
    standing = Standing(default="decline", active=Judge(policy, COLUMNS))

    said = standing.decide({"km": 60.0}, model=False)

    assert (said.decision, said.reasons, said.score, said.model_version) == ("review", ("far",), None, "")
    assert said.rules_version == policy.rules_version


def test_a_shadow_is_told_and_decides_nothing() -> None:
    mild, strict = hr.Policy(), hr.Policy(rules=[rule("far", "km > 50", "decline", reason='"far"')])
    standing = Standing(default="review", active=Judge(mild, COLUMNS, "p/0@1"), shadow=Judge(strict, COLUMNS, "p/0@2"))

    said = standing.decide(ROW)

    assert (said.decision, said.reasons, said.policy_seen) == ("allow", (), "p/0@1")
    assert json.loads(said.shadow or "") == {
        "decision": "decline",
        "reasons": ['"far"'],
        "score": None,
        "rules_version": strict.rules_version,
        "model_version": "",
        "policy_seen": "p/0@2",
    }


def test_until_a_policy_is_published_the_default_is_said() -> None:
    said = Standing(default="decline").decide(ROW)
    assert said == Decision(decision="decline", reasons=("nothing is published",))
