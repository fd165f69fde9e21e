"""What tests of the bank share: a history lived through once, payments made by hand, a lake of rows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

import headrace as hr
from bank.events import Payment
from bank.policy import policy
from bank.traffic import Traffic
from bank.vectors import Lived, live_through
from headrace.model.event import event_type
from headrace.stores import arrow

START = datetime(2026, 10, 1, tzinfo=UTC)


@cache
def lived() -> Lived:
    """Ten days of 150 cards with many frauds, decided by the bank's own policy."""
    return live_through(Traffic(11, cards=150, shops=200, harm=6), START, 10, policy())


def pay(number: int, at: datetime, amount: str = "20.00", **more: Any) -> Payment:
    """A payment of one card in Zurich."""
    usual = {"card_id": "card-a", "customer_id": "u1", "terminal_id": "t1", "country": "CH", "lat": 47.38, "lon": 8.54}
    return Payment(payment_id=f"p{number}", amount=hr.money(amount), at=at, last4="1234", **(usual | more))


def store(lake: Path, table: str, event: type, rows: Sequence[dict[str, Any]]) -> None:
    """Rows of an event's columns as a table of a lake."""
    fields = arrow.fields(event_type(event).columns)
    write_deltalake(
        str(lake / table), pa.table({f.name: pa.array([row[f.name] for row in rows], f.type) for f in fields})
    )
