"""A stream foretold through several features: they are read at once, and one by one where a key hangs on another."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import headrace as hr
from headrace.features.ahead import Ahead
from tests.features.keeping import Keeping, Payment

NOON = datetime(2026, 11, 3, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("place", "where"),
    [
        ("coalesce(country, '?')", "true"),
        ("coalesce(last_country, '?')", "true"),
        ("coalesce(last_country, '?')", "last_country is not null"),
    ],
)
def test_a_key_may_hang_on_what_other_features_tell(redis_url: str, tmp_path: Path, place: str, where: str) -> None:
    # given a card, and the country that it is in or was in before
    bank = Keeping(tmp_path, redis_url)
    card = bank.app.features("card", key="card_id", source=bank.payments, ttl="1 d").last("country")
    card.to(hr.redis(f"{bank.prefix}:card:{{card_id}}"))
    rows = card.vectors.where(where).select(f"*, {place} as place")
    places = bank.app.features("places", key="place", source=rows, ttl="1 d").over("1 h", there=hr.count())
    places.to(hr.redis(f"{bank.prefix}:places:{{place}}"))
    places.vectors.to(bank.app.topic("vectors"))

    # when a payment is foretold
    *before, last = [
        Payment(f"p{n}", "c1", hr.money(1), country, 0, NOON + timedelta(minutes=n))
        for n, country in enumerate(("CH", "FR", "CH", "DE", "CH", "FR"))
    ]
    bank.run(before)
    with bank.reader(card) as of_card, bank.reader(places) as of_places:
        told = Ahead(places.vectors.node, {"card": of_card.online, "places": of_places.online})(last)

    # then it has the row that the stream gives it
    assert told == bank.run([*before, last])[-1].as_dict()
    assert told["there_1h"] > 1
