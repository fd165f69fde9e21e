"""A model's text: read whole or refused, with the reason."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import headrace as hr
from headrace.base.errors import BadModel
from tests.steps.boosted import FEATURES, booster, model


def test_a_model_is_read_from_a_file_and_named_by_its_text(tmp_path: Path) -> None:
    booster().save_model(tmp_path / "fraud.txt")

    found = hr.Model.read(tmp_path / "fraud.txt")

    assert (found.features, len(found.trees), found.sigmoid, found.average) == (FEATURES, 20, 1.0, False)
    assert found.version == found.sha256[:12]
    assert str(found) == f"model {found.version}: 20 trees over amount, hour, km, times"


def test_another_text_is_another_version() -> None:
    first = model()
    assert hr.Model(text=first.text).version == first.version
    assert hr.Model(text=re.sub(r"leaf_value=\S+", "leaf_value=0.5", first.text, count=1)).version != first.version


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda text: text[: len(text) // 2], "it has no line 'end of trees', so some of it may be missing"),
        (lambda text: text.replace("\nTree=19", "\nTrees=19"), "it speaks of 20 trees and has 19"),
        (lambda text: text.replace("tree\n", "forest\n", 1), "its first line is not 'tree'"),
        (lambda text: text.replace("objective=binary", "objective=poisson"), "its objective is 'poisson sigmoid:1'"),
        (lambda text: text.replace("num_class=1", "num_class=3"), "it tells several classes apart"),
        (lambda text: text.replace("num_cat=0", "num_cat=1", 1), "it has categorical splits or linear leaves"),
        (lambda text: text.replace("feature_names=amount", "feature_names=hour"), "it asks for 4 features and names 4"),
        (lambda text: text.replace("feature_names=amount ", "feature_names="), "it asks for 4 features and names 3"),
        (
            lambda text: re.sub(r"threshold=\S+ ", "threshold=", text, count=1),
            "a tree of 15 leaves has 13 of",
        ),
        (lambda text: re.sub(r"threshold=\S+", "threshold=nan", text, count=1), "a threshold or a leaf is no number"),
        (lambda text: re.sub(r"left_child=\S+", "left_child=0", text, count=1), "a node is reached by two ways"),
        (lambda text: re.sub(r"split_feature=\S+", "split_feature=9", text, count=1), "a split asks for a feature"),
        (lambda text: re.sub(r"leaf_value=\S+", "leaf_value=x", text, count=1), "could not convert string to float"),
        (lambda text: re.sub(r"leaf_value=.*", "", text), "it does not say 'leaf_value'"),
        (lambda _: "", "it has no line 'end of trees'"),
    ],
)
def test_a_text_that_is_no_model_is_refused_with_the_reason(change: object, why: str) -> None:
    with pytest.raises(BadModel, match="this text is no model that can be asked") as refused:
        hr.Model(text=change(model().text))  # type: ignore[operator]

    assert refused.value.why.startswith(why)
    assert str(refused.value.where).endswith(f"{Path(__file__).name}:{refused.value.where.line}")  # type: ignore[union-attr]


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadModel, match="cannot be read as a model"):
        hr.Model.read(tmp_path / "none.txt")
