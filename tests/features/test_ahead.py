"""A stream foretold through features and tables: they are read at once, and one by one where a key hangs on another."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from redis import Redis

import headrace as hr
from headrace.base.errors import BadStore
from headrace.features.ahead import Ahead
from headrace.features.declared import kept_rows
from headrace.features.online_table import OnlineTable
from tests.features.keeping import Keeping, Payment, fill

NOON = datetime(2026, 11, 3, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


@hr.event(topic="places", key="country", time="since")
class Place:
    country: str
    most: hr.Money
    since: datetime


def paid(number: int, country: str | None, at: datetime) -> Payment:
    return Payment(f"p{number}-{at:%M}", f"c{number}", hr.money(1), country, 0, at)


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


@pytest.mark.parametrize("as_of", [None, "at"])
@pytest.mark.parametrize(("on", "reads"), [("country", 1), ("last_country", 2)])
def test_what_a_table_says_is_read_beside_the_features(
    redis_url: str, tmp_path: Path, on: str, reads: int, as_of: str | None
) -> None:
    # given a place that has changed, one that has gone and one that is not known, each with a card that paid there
    bank, wait = Keeping(tmp_path, redis_url), None if as_of is None else "0 s"
    places = bank.app.table(Place, history="1 d").to(hr.redis(f"{bank.prefix}:places:{{country}}"))
    card = bank.app.features("card", key="card_id", source=bank.payments, ttl="1 d").last("country")
    card.to(hr.redis(f"{bank.prefix}:card:{{card_id}}"))
    take = "card.*, places.most, places.since, places.country as place"
    rows = card.vectors.enrich(places, on=f"card.{on} = places.country", take=take, as_of=as_of, wait=wait)
    rows.to(bank.app.topic("vectors"))
    kept = kept_rows(bank.app.outputs, places.read)
    with (
        hr.testing.run(bank.app) as t,
        bank.reader(card) as of_card,
        closing(OnlineTable(places.read, kept, redis_url)) as of_places,
        Redis.from_url(redis_url) as redis,
    ):
        t.send(*(Place(country, hr.money(90), NOON - 9 * MINUTE) for country in ("CH", "FR", "None")))
        t.send(Place("CH", hr.money("100.50"), NOON - 8 * MINUTE))
        t.delete(Place, "FR", at=NOON - 7 * MINUTE)
        countries = ("CH", "FR", "DE", None)
        t.send(*(paid(n, country, NOON) for n, country in enumerate(countries)))
        fill(bank.app, t, redis_url, tmp_path / "lake")

        # when payments are foretold
        coming = [paid(n, country, NOON + MINUTE) for n, country in enumerate(countries)]
        ahead = Ahead(rows.node, {"card": of_card.online}, [of_places])
        redis.config_resetstat()
        told = [ahead(payment) for payment in coming]
        calls = redis.info("commandstats")["cmdstat_eval"]["calls"]

        # then they have the rows that the stream gives them; a key that hangs on features is read after them
        t.send(*coming)
        assert told == [row.as_dict() for row in t.read("vectors")[-len(coming) :]]
        assert [row["most"] for row in told if row] == [hr.money("100.50"), None, None, None]
        assert calls == 4 + 3 * (reads - 1)  # nothing to read after them where there was no country

        # and what was said before is not known
        early = ahead(paid(0, "CH", NOON - 8 * MINUTE - timedelta(seconds=1)))
        assert early is not None
        assert early["most"] == (None if as_of else hr.money("100.50") if on == "country" else None)


def test_a_table_that_nobody_wrote_yet_is_empty_and_another_one_is_refused(redis_url: str, tmp_path: Path) -> None:
    bank = Keeping(tmp_path, redis_url)
    places = bank.app.table(Place, ttl="1 h").to(hr.redis(f"{bank.prefix}:places:{{country}}"))
    with closing(OnlineTable(places.read, kept_rows(bank.app.outputs, places.read), redis_url)) as online:
        rows = bank.payments.enrich(places, on="country")
        row = Ahead(rows.node, {}, [online])(paid(1, "CH", NOON))
        assert row is not None
        assert (row["country"], row["most"], row["since"]) == ("CH", None, None)

        # the rows of one app live for an hour, those of the other for ever
        other = hr.App("other")
        rows = other.stream(Payment, disorder="0 s").enrich(other.table(Place), on="country")
        with pytest.raises(BadStore, match="keeps other rows than places has") as refused:
            Ahead(rows.node, {}, [online])
        assert "ttl 1 h, and is asked for with country text" in refused.value.why
