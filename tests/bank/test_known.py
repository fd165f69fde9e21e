"""What payments proved to be, when people correct themselves."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

import headrace as hr
from bank.events import Label
from bank.known import frauds
from headrace.base.settings import load
from headrace.ops.query import query
from tests.bank.deciding import START, store


def said(payment: str, fraud: int, days: int) -> dict[str, Any]:
    at = START + timedelta(days=days)
    return structs.asdict(Label(payment, "card", "terminal", "customer", hr.money(5), fraud, "somebody", at))


def test_the_latest_label_of_a_payment_counts(tmp_path: Path) -> None:
    settings = load({"home": str(tmp_path)}, root=tmp_path, env={})
    labels = [
        *(said("taken back", 1, 1), said("taken back", 0, 2)),
        *(said("found out", 0, 1), said("found out", 1, 3)),
        *(said("said twice", 1, 2), said("said twice", 1, 4)),
        *(said("to and fro", 1, 1), said("to and fro", 0, 2), said("to and fro", 1, 5)),
        said("genuine", 0, 1),
    ]
    store(settings.lake, "labels", Label, labels)
    known = frauds(lambda sql: list(query(settings, sql).rows))
    assert {id: (at - START).days for id, at in known.items()} == {"found out": 3, "said twice": 2, "to and fro": 5}


def test_before_the_first_label_nothing_is_known(tmp_path: Path) -> None:
    settings = load({"home": str(tmp_path)}, root=tmp_path, env={})
    assert frauds(lambda sql: list(query(settings, sql).rows)) == {}
    with pytest.raises(hr.HeadraceError, match="not one question"):
        frauds(lambda sql: list(query(settings, f"{sql}; {sql}").rows))
