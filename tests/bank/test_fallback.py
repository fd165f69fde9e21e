"""Without the flow: what is known online is what the flow would have known, and rules hold that ask for it."""

from __future__ import annotations

from contextlib import ExitStack, closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from redis import Redis

import headrace as hr
from bank.decide import decide, vectors
from bank.events import Customer, Label
from bank.policy import policy
from bank.record import card, customer, customers, record, terminal
from headrace.base.ids import random_id
from headrace.features.ahead import Ahead
from headrace.features.declared import kept_rows
from headrace.features.online_table import OnlineTable
from headrace.features.reader import FeatureReader
from headrace.steps.policy import Judge
from tests.bank.deciding import pay
from tests.features.keeping import fill
from tests.stores.conftest import redis_url as redis_url

UNKNOWN = {"seen_card", "seen_terminal", "seen_customer"}
"""Columns that the log tells."""
MINUTE = timedelta(minutes=1)


def life(start: datetime) -> list[Any]:
    """One card at one terminal abroad: what its customer may spend a day was made less; fourteen payments, PINs that
    were guessed twice, frauds that became known there, and a last payment."""
    own = {name: f"{name}-{random_id()}" for name in ("card_id", "customer_id", "terminal_id")}
    events: list[Any] = [pay(n, start + n * 50 * MINUTE, f"{20 + n % 5}.00", **own) for n in range(14)]
    events += [Customer(own["customer_id"], "FR", start, hr.money(limit), start) for limit in (900, 400)]
    for guessed in (660, 670):
        events += [pay(guessed + n, start + (guessed + n / 4) * MINUTE, pin_ok=n == 3, **own) for n in range(4)]
    told = [start + minute * MINUTE for minute in (675, 676)]
    events += [Label(f"x{at}", "card-x", own["terminal_id"], "u-x", hr.money(30), 1, "customer", at) for at in told]
    return [*sorted(events, key=lambda event: event.at), pay(999, start + 690 * MINUTE, **own)]


def test_a_payment_has_the_row_that_the_flow_would_give_it(redis_url: str, tmp_path: Path) -> None:
    with hr.testing.run(record) as kept, hr.testing.run(decide, realtime=True) as t, ExitStack() as opened:
        *before, last = life(t.time("08:00"))
        kept.send(*before)
        kept.end()
        fill(record, kept, redis_url, tmp_path / "lake")
        t.send(*before, last)
        online = {}
        for known in (card, terminal, customer):
            reader = FeatureReader(known.node, record.outputs, redis=lambda: redis_url, lake=tmp_path)
            online[known.name] = opened.enter_context(reader).online
        profiles = OnlineTable(customers.read, kept_rows(record.outputs, customers.read), redis_url)
        ahead = Ahead(vectors.node, online, [opened.enter_context(closing(profiles))])
        redis = opened.enter_context(Redis.from_url(redis_url))
        redis.config_resetstat()
        row = ahead(last)
        assert redis.info("commandstats")["cmdstat_eval"]["calls"] == 1  # one round trip for three features and a row
        flow = t.read("decisions.raw")[-1].as_dict()
        stranger = replace(last, customer_id="nobody")
        t.send(replace(stranger, payment_id="p-stranger"))
        without = ahead(stranger)
        of_a_stranger = t.read("decisions.raw")[-1].as_dict()
    assert row is not None
    assert without is not None
    assert {name: flow[name] for name in row.keys() - UNKNOWN} == {name: row[name] for name in row.keys() - UNKNOWN}
    assert (row["times_30d"], row["uses_1d"], row["frauds_28d"], row["acts_7d"]) == (23, 23, 2, 2)
    assert row["z"] is not None
    assert (row["home"], row["abroad"], row["day_limit"], row["seen_profile"]) == (
        "FR",
        True,
        hr.money(400),
        before[0].at,
    )
    profile = ("home", "abroad", "day_limit", "seen_profile")
    assert [without[name] for name in profile] == [of_a_stranger[name] for name in profile] == [None] * 4

    judge = Judge(policy(), vectors.columns)
    terminal_is_bad = "frauds at this terminal became known"
    assert set(judge.decide(row, model=False).reasons) == {
        terminal_is_bad,
        "suspicious acts with this customer's cards",
        "over the limit of a day",
    }
    assert judge.decide(without, model=False).reasons == (terminal_is_bad,)
