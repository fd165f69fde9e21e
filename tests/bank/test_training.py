"""Training: what was known then, tested on later days; the model that is shipped."""

from __future__ import annotations

import hashlib
import json
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec import structs

import headrace as hr
from bank.decided import Decided
from bank.events import Label
from bank.policy import MODEL, policy
from bank.training import COLUMNS, average_precision, from_lake, train
from headrace.base.settings import load
from headrace.ops.query import query
from tests.bank.deciding import START, lived, store

DELAY = timedelta(days=1)


def test_a_model_learns_only_from_what_was_known_by_then(tmp_path: Path) -> None:
    made = lived().made
    known = {one.payment.payment_id: one.payment.at + DELAY for one in made if one.fraud}
    split = START + timedelta(days=7)
    trained = train(lived().rows, known, split=split, delay=DELAY)

    assert trained.trained_until < split - DELAY
    learnt = [one for one in made if one.fraud and one.payment.pin_ok and one.payment.at < split - DELAY]
    assert trained.frauds == len(learnt)  # and none that became known only after the split
    assert train(lived().rows, known, split=split, delay=DELAY).text == trained.text
    assert trained.figures.average_precision > 0.3

    trained.save(tmp_path / "fraud.txt", "a test")
    model = hr.Model.read(tmp_path / "fraud.txt")
    assert model.features == COLUMNS
    beside = json.loads((tmp_path / "fraud.json").read_text())
    assert beside["sha256"] == hashlib.sha256((tmp_path / "fraud.txt").read_bytes()).hexdigest()
    assert beside["figures"]["frauds"] == trained.figures.frauds


def test_the_lake_has_all_that_training_needs(tmp_path: Path) -> None:
    # given what was decided, and what became known of it a day later
    settings = load({"home": str(tmp_path)}, root=tmp_path, env={})
    known = {one.payment.payment_id: one.payment.at + DELAY for one in lived().made if one.fraud}
    store(settings.lake, "decisions", Decided, lived().rows)
    labels = [one.label(known[one.payment.payment_id]) for one in lived().made if one.fraud]
    store(settings.lake, "labels", Label, [structs.asdict(label) for label in labels])

    # then it is the training on the same rows
    trained = from_lake(lambda sql: list(query(settings, sql).rows))
    ats = [row["at"] for row in lived().rows]
    again = train(lived().rows, known, split=min(ats) + (max(ats) - min(ats)) * 3 / 4, delay=DELAY)
    assert (trained.text, trained.figures) == (again.text, again.figures)
    assert trained.frauds > 5


def test_too_little_to_learn_from_is_told() -> None:
    with pytest.raises(hr.HeadraceError, match="nothing to learn from"):
        from_lake(lambda _: [])
    with pytest.raises(hr.HeadraceError, match="too little to learn from"):
        train(lived().rows, {}, split=START, delay=DELAY)


def test_average_precision_of_the_best_and_the_worst_order() -> None:
    assert average_precision([True, True, False], [0.9, 0.8, 0.1]) == 1.0
    assert average_precision([False, False, True], [0.9, 0.8, 0.1]) == pytest.approx(1 / 3)
    assert average_precision([False], [0.5]) == 0.0


def test_the_shipped_model_is_the_one_that_is_described() -> None:
    beside = json.loads(MODEL.with_suffix(".json").read_text())
    assert beside["sha256"] == hashlib.sha256(MODEL.read_bytes()).hexdigest()
    assert beside["columns"] == list(COLUMNS)
    assert MODEL.stat().st_size < 300_000
    assert policy().model_version == beside["sha256"][:12]
