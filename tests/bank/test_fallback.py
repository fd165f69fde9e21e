"""Without the flow: what is known of a card online is what the flow would have known of it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import headrace as hr
from bank.decide import decide, vectors
from bank.record import card, record
from headrace.base.ids import random_id
from headrace.features.ahead import Ahead
from headrace.features.reader import FeatureReader
from tests.bank.deciding import pay
from tests.features.keeping import fill
from tests.stores.conftest import redis_url as redis_url

UNKNOWN = {"uses_1h", "uses_1d", "frauds_28d", "acts_7d", "home", "abroad", "day_limit"}
UNKNOWN |= {"seen_card", "seen_terminal", "seen_customer"}
"""Columns that terminals, customers and the log tell."""


def test_a_payment_has_the_row_that_the_flow_would_give_it(redis_url: str, tmp_path: Path) -> None:
    own = f"card-{random_id()}"
    with hr.testing.run(record) as kept, hr.testing.run(decide) as t:
        payments = [
            pay(n, t.time("08:00") + n * timedelta(minutes=50), f"{20 + n % 5}.00", card_id=own) for n in range(14)
        ]
        *before, last = payments
        kept.send(*before)
        fill(record, kept, redis_url, tmp_path / "lake")
        t.send(*payments)
        with FeatureReader(card.node, record.outputs, redis=lambda: redis_url, lake=tmp_path) as reader:
            row = Ahead(vectors.node, {"card": reader.online})(last)
        flow = t.read("decisions.raw")[-1].as_dict()
    assert row is not None
    assert {name: flow[name] for name in row.keys() - UNKNOWN} == {name: row[name] for name in row.keys() - UNKNOWN}
    assert (row["times_30d"], row["abroad"], row["frauds_28d"]) == (14, None, None)
    assert row["z"] is not None
