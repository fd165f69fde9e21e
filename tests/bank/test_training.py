"""Training: what was known then, tested on later days; the model that is shipped."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec import structs

import headrace as hr
from bank.decided import Decided
from bank.events import Label
from bank.policy import MODEL, policy
from bank.training import COLUMNS, average_precision, from_lake, train
from headrace.base.settings import Settings
from tests.bank.deciding import START, lived, store
from tests.bank.saying import Said

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


def test_the_lake_has_all_that_training_needs(
    desk: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # given what was decided, and what became known of it a day later; one fraud was none after all
    known = {one.payment.payment_id: one.payment.at + DELAY for one in lived().made if one.fraud}
    labels = [one.label(known[one.payment.payment_id]) for one in lived().made if one.fraud]
    mistaken = next(label for label in labels if label.at < START + timedelta(days=4))
    del known[mistaken.payment_id]
    labels.append(structs.replace(mistaken, fraud=0, at=mistaken.at + DELAY))
    found_out_late = max((one for one in known if known[one] < START + timedelta(days=5)), key=known.__getitem__)
    known[found_out_late] += timedelta(days=60)
    labels = [structs.replace(one, at=known[found_out_late]) if one.payment_id == found_out_late else one
              for one in labels]  # fmt: skip
    store(desk.lake, "decisions", Decided, lived().rows)
    store(desk.lake, "labels", Label, [structs.asdict(label) for label in labels])

    # when the command trains on it
    said = Said(capsys, "train", str(tmp_path / "fraud.txt"), "--lake")

    # then it is the training on the same rows, without that one
    ats = [row["at"] for row in lived().rows]
    again = train(lived().rows, known, split=min(ats) + (max(ats) - min(ats)) * 3 / 4, delay=DELAY)
    assert (said.code, (tmp_path / "fraud.txt").read_text()) == (0, again.text)
    assert said.json == asdict(again.figures)
    assert json.loads((tmp_path / "fraud.json").read_text())["frauds"] == again.frauds > 5
    assert said.err.splitlines()[0] == "reading what was decided"
    assert said.err.splitlines()[1].startswith(f"training on {again.rows:,} payments, to be tested on ")


def test_the_command_trains_on_made_up_traffic(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = Said(capsys, "train", str(tmp_path / "fraud.txt"), "--days", "16", "--cards", "60")
    assert said.code == 0
    assert said.err.splitlines()[:-1] == [f"lived through {day} of 16 days" for day in range(1, 17)]
    beside = json.loads((tmp_path / "fraud.json").read_text())
    assert beside["command"] == f"bank train {tmp_path / 'fraud.txt'} --days 16 --cards 60"
    assert said.json == beside["figures"]


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
