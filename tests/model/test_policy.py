"""Policies as data: rules, thresholds and versions; what could never decide is refused at the user's line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.base.errors import BadPolicy, ExpressionRefused, ExpressionType, HeadraceError, UnknownColumn
from headrace.expr.types import BOOL, FLOAT, INT, MONEY, TEXT, Column
from headrace.model.rule import read_rules
from tests.steps.boosted import model

COLUMNS = (Column("amount", MONEY), Column("hour", INT), Column("km", FLOAT, True), Column("times", BOOL))
LARGE = hr.Rule(name="large", when="amount > 100", action="review")
FAR = hr.Rule(name="far", when=hr.col.km > 50, action="decline", reason="too far", final=True)
LEVELS = {"review": 0.5, "decline": 0.9}


def test_a_policy_is_the_same_after_it_was_published() -> None:
    policy = hr.Policy(rules=[LARGE, FAR], model=model(), thresholds=LEVELS)

    found = hr.Policy.of_text(policy.as_text("a first try"))

    assert found == policy
    assert (found.rules_version, found.model_version) == (policy.rules_version, model().version)
    assert found.rules[1].when == "km > 50"
    assert hr.Policy.note_of(policy.as_text("a first try")) == "a first try"


def test_one_rule_alone_is_a_list_of_it() -> None:
    assert hr.Policy(rules=LARGE).revised(rules=FAR) == hr.Policy(rules=[FAR])  # type: ignore[arg-type]


def test_versions_tell_policies_apart() -> None:
    policy = hr.Policy(rules=[LARGE, FAR], model=model(), thresholds=LEVELS)
    others = [
        policy.revised(rules=[FAR, LARGE]),
        policy.revised(rules=[LARGE]),
        policy.revised(thresholds={"review": 0.4}),
    ]
    assert len({one.rules_version for one in (policy, *others)}) == 4
    assert {one.model_version for one in others} == {policy.model_version}
    assert policy.revised(model=model(sigmoid=2.0)).model_version != policy.model_version
    assert hr.Policy().model_version == ""


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"rules": [LARGE, LARGE]}, "two rules are called 'large'"),
        ({"rules": ["amount > 1"]}, "'amount > 1' is no rule"),
        ({"rules": 7}, "7 is no rule"),
        ({"model": "fraud.txt", "thresholds": LEVELS}, "'fraud.txt' is no model"),
        ({"thresholds": LEVELS}, "thresholds without a model"),
        ({"model": model()}, "a model without thresholds"),
        ({"model": model(), "thresholds": {"allow": 0.1}}, "thresholds {'allow': 0.1}"),
        ({"model": model(), "thresholds": {"review": "0.5"}}, "a threshold of '0.5'"),
        ({"model": model(), "thresholds": {"review": 0.9, "decline": 0.5}}, "review begins above decline"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_policy_that_could_never_decide_is_refused(given: dict[str, Any], what: str) -> None:
    with pytest.raises(BadPolicy) as refused:
        hr.Policy(**given)
    assert refused.value.what == what
    assert Path(refused.value.where.file) == Path(__file__)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"action": "block"}, "the rule 'r' asks for 'block'"),
        ({"name": " "}, "' ' cannot name a rule or be its reason"),
        ({"reason": "two\nlines"}, "'two\\nlines' cannot name a rule or be its reason"),
        ({"when": 7}, "7 is no condition"),
        ({"when": "a\x00b"}, "the condition of 'r' has letters that cannot be printed"),
        ({"final": 1}, "final=1 of a rule is not bool"),
    ],
)
def test_a_rule_that_cannot_be_is_refused(given: dict[str, Any], what: str) -> None:
    with pytest.raises(BadPolicy) as refused:
        hr.Rule(**({"name": "r", "when": "amount > 1", "action": "review"} | given))
    assert refused.value.what == what


@pytest.mark.parametrize(
    ("when", "kind", "what"),
    [
        ("amunt > 1", UnknownColumn, "there is no column 'amunt'"),
        ("amount", HeadraceError, "amount is money, not a condition"),
        ("amount > 'x'", ExpressionType, "amount > 'x' cannot be computed"),
        ("java_method('x') = 1", ExpressionRefused, "java_method is not allowed in an expression"),
        ("rand() < 0.5", ExpressionRefused, "rand is not allowed in an expression"),
    ],
)
def test_a_condition_is_typed_over_the_rows_and_blamed_at_its_own_line(when: str, kind: type, what: str) -> None:
    rule = hr.Rule(name="r", when=when, action="review")  # the line that is blamed
    with pytest.raises(kind) as refused:
        hr.Policy(rules=[rule]).bound(COLUMNS)
    assert refused.value.what == what
    assert refused.value.where.source.endswith("# the line that is blamed")


def test_what_a_model_asks_for_must_be_there_and_be_numbers() -> None:
    policy = hr.Policy(model=model(), thresholds=LEVELS)
    assert [str(one.type) for one in policy.bound(COLUMNS).asked] == ["float"] * 4
    with pytest.raises(UnknownColumn, match="the model asks for 'times'"):
        policy.bound(COLUMNS[:3])
    with pytest.raises(BadPolicy, match="the model asks for 'times', which is text"):
        policy.bound((*COLUMNS[:3], Column("times", TEXT)))


@pytest.mark.parametrize("text", ["", "7", "[]", "{}", '{"rules": 7, "thresholds": {}, "model": null}', "[" * 100_000])
def test_a_record_that_is_no_policy_is_refused(text: str) -> None:
    with pytest.raises(BadPolicy):
        hr.Policy.of_text(text)
    with pytest.raises(BadPolicy, match="is no rule"):
        hr.Policy.of_text(json.dumps({"rules": [{"name": "x"}], "thresholds": {}, "model": None}))


def test_rules_are_read_from_a_file_each_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    file.write_text("""
[thresholds]
review = 0.5

[[rule]]
name = "large"
when = "amount > 100"
action = "review"

[[rule]]
name = "far"
when = "km > 50"
action = "decline"
reason = "too far"
final = true
""")

    rules, thresholds = read_rules(file)

    assert (rules, thresholds) == ((LARGE, FAR), {"review": 0.5})
    assert [rule.where.line for rule in rules] == [5, 10]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "text", ["[[rule]", 'rule = "x"', "[[rule]]\nname = 1", "[[rules]]\nname = 'x'", "[rule]\nname = 'x'"]
)
def test_a_file_that_holds_no_rules_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "rules.toml").write_text(text)
    with pytest.raises(BadPolicy):
        read_rules(tmp_path / "rules.toml")
    with pytest.raises(BadPolicy, match="cannot be read as rules"):
        read_rules(tmp_path / "none.toml")
