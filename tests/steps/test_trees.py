"""Asking a model: what LightGBM says, bit for bit up to the last step, which is to make a probability of the sum."""

from __future__ import annotations

import math
from typing import Any

import pytest

from headrace.model.trees import Tree
from headrace.steps.trees import exp, raised_by, raw, score
from tests.steps.boosted import booster, model, rows

KINDS: list[dict[str, Any]] = [
    {},
    {"zero_as_missing": True},
    {"use_missing": False},
    {"objective": "regression"},
    {"sigmoid": 2.0},
    {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.7},
]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_model_says_what_lightgbm_says(kind: dict[str, Any]) -> None:
    asked, trained, ours = rows(3_000, seed=2, odd=True), booster(**kind), model(**kind)

    told = [(raw(ours, row), score(ours, row)) for row in asked.tolist()]

    assert [sum for sum, _ in told] == trained.predict(asked, raw_score=True).tolist()
    # C's exp has another last digit than ours, in a tenth of all cases.
    for (_, mine), theirs in zip(told, trained.predict(asked).tolist(), strict=True):
        assert abs(mine - theirs) <= 2 * math.ulp(theirs)


def test_a_tree_that_never_split_is_its_one_leaf() -> None:
    alone = model(min_data_in_leaf=5_000)
    assert {len(tree.leaf) for tree in alone.trees} == {1}
    assert raw(alone, [math.nan] * 4) == booster(min_data_in_leaf=5_000).predict([[math.nan] * 4], raw_score=True)[0]


def test_the_features_that_raised_the_score_are_those_whose_splits_added_most() -> None:
    alone = Tree(
        feature=(2, 0, 1),
        threshold=(1.0, 1.0, 1.0),
        default_left=(True, True, True),
        missing=(0, 0, 0),
        left=(1, -1, -3),
        right=(-2, 2, -4),
        leaf=(0.1, 0.2, 0.4, 1.0),
        inner=(0.0, 0.5, 0.7),
    )
    ours = model()
    object.__setattr__(ours, "trees", (alone,))
    assert raised_by(ours, [2.0, 2.0, 0.0, 0.0]) == ["km", "hour", "amount"]  # 0.5, 0.3, 0.2
    assert raised_by(ours, [2.0, 0.0, 0.0, 0.0]) == ["km", "amount"]  # hour took away
    assert raised_by(ours, [0.0, 0.0, 2.0, 0.0]) == ["km"]


def test_exp_is_near_that_of_the_c_library_and_ends_where_floats_do() -> None:
    for n in range(-7_300, 7_000):
        x = n / 9.87
        assert abs(exp(x) - math.exp(x)) <= math.ulp(math.exp(x))
    assert [exp(x) for x in (0.0, 1e-300, 710.0, -746.0, math.inf, -math.inf)] == [
        1.0,
        1.0,
        math.inf,
        0.0,
        math.inf,
        0.0,
    ]
    assert math.isnan(exp(math.nan))
