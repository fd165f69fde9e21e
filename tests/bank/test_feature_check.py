"""What decisions were made with, computed anew from the lake: the features of each decision are the same."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from msgspec import structs

import headrace as hr
from bank.app import bank
from bank.decide import decide
from bank.events import Act, Label, Payment
from bank.record import record
from bank.vectors import DELAY
from headrace.base.settings import load
from headrace.ops.features import reader
from tests.bank.deciding import START, lived, store


@pytest.mark.parametrize(
    ("app", "name", "ties"), [(decide, "card", 0), (decide, "terminal", 1), (record, "customer", 0)]
)
def test_logged_features_are_those_that_the_lake_gives(app: hr.App, name: str, ties: int, tmp_path: Path) -> None:
    """But for one: a label has the instant of a payment, and the lake does not know which came first. The acts of the
    lake are those of `record`."""
    settings = load({"home": str(tmp_path)}, root=tmp_path, env={})
    labels = [one.label(one.payment.at + DELAY) for one in lived().made if one.fraud]
    known = [label for label in labels if label.at < START + timedelta(days=10)]
    store(settings.lake, "payments", Payment, [structs.asdict(one.payment) for one in lived().made])
    store(settings.lake, "labels", Label, [structs.asdict(label) for label in known])
    with hr.testing.run(record, now=START + timedelta(days=10)) as t:
        t.send(*(one.payment for one in lived().made))
        t.end()
        acts = [row.as_dict() for row in t.read("acts")]
    assert len(acts) > 5
    store(settings.lake, "acts", Act, acts)

    with reader(app, name, settings, beside=(bank, decide, record)) as asked:
        checked = asked.check(lived().rows)
    assert checked.rows == len(lived().made) > 1_000
    assert (checked.missing, sum(match.rows - match.equal for match in checked.features)) == (0, ties)
