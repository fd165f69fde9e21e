"""Training: what was known then, tested on later days; the model that is shipped."""

from __future__ import annotations

import hashlib
import json
from datetime import timedelta
from pathlib import Path

import pytest

import headrace as hr
from bank.policy import MODEL, policy
from bank.training import COLUMNS, average_precision, train
from tests.bank.deciding import START, lived

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
