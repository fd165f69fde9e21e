"""What decisions were made with, computed anew from the lake: the features of each decision are the same."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from bank.app import bank, payments
from bank.decide import decide
from bank.record import record
from bank.vectors import DELAY
from headrace.base.settings import load
from headrace.expr.types import Columns
from headrace.ops.features import reader
from headrace.stores import arrow
from tests.bank.deciding import START, lived


def store(lake: Path, table: str, columns: Columns, rows: Sequence[Any]) -> None:
    made = {f.name: pa.array([getattr(row, f.name) for row in rows], f.type) for f in arrow.fields(columns)}
    write_deltalake(str(lake / table), pa.table(made))


@pytest.mark.parametrize(("name", "ties"), [("card", 0), ("terminal", 1)])
def test_logged_features_are_those_that_the_lake_gives(name: str, ties: int, tmp_path: Path) -> None:
    """But for one: a label has the instant of a payment, and the lake does not know which came first."""
    settings = load({"home": str(tmp_path)}, root=tmp_path, env={})
    labels = [one.label(one.payment.at + DELAY) for one in lived().made if one.fraud]
    known = [label for label in labels if label.at < START + timedelta(days=10)]
    store(settings.lake, "payments", payments.columns, [one.payment for one in lived().made])
    kept = next(output for output in record.outputs if output.target.label == "lake:labels")
    store(settings.lake, "labels", kept.of.columns, known)

    with reader(decide, name, settings, beside=(bank, record)) as asked:
        checked = asked.check(lived().rows)
    assert checked.rows == len(lived().made) > 1_000
    assert (checked.missing, sum(match.rows - match.equal for match in checked.features)) == (0, ties)
