"""What features remember, as outputs: columns of each stream, the sets they go to, mistakes at the user's line."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

import headrace as hr
from headrace.base.errors import DeclarationError
from headrace.model.features import Features
from headrace.model.output import Output
from headrace.model.target import FeatureRows
from tests.shapes import Payment, Reading


def card(app: hr.App | None = None) -> Features:
    app = app or hr.App("bank")
    payments = app.stream(Payment, disorder="0 s")
    found = app.features("card", key="card_id", source=payments, ttl="30 d", lateness="2 h", once="payment_id")
    return found.over("1 d", "7 d", spent=hr.sum("amount"), big=hr.max("amount * 2"), cards=hr.distinct("card_id"))


def kept(features: Features, store: str = "card:{card_id}") -> list[tuple[Output, FeatureRows]]:
    features.to(hr.redis(store))
    return [(one, one.target) for one in features.app.outputs if isinstance(one.target, FeatureRows)]


def test_a_row_is_its_key_its_id_and_what_is_asked_of_it() -> None:
    ((output, target),) = kept(card().last("at", n=3))
    assert [column.name for column in output.of.columns] == ["card_id", "payment_id", "amount", "asked_2", "at"]
    assert target.values == (("amount", "amount"), ("asked_2", "amount * 2"), ("card_id", "card_id"), ("at", "at"))
    assert (target.label, target.id, target.rows) == ("redis:card:{card_id}", "payment_id", 3)
    assert (target.reach, target.lateness) == (timedelta(days=7), timedelta(hours=2))
    assert target.ttl == timedelta(days=30, hours=2)


def test_rows_of_another_stream_have_sets_of_their_own_as_long_as_windows_reach() -> None:
    app = hr.App("bank")
    readings = app.stream(Reading, disorder="0 s").select("sensor as card_id, count").named("readings")
    (_, own), (output, other) = kept(card(app).over("60 d", of=readings, n=hr.sum("count")))
    assert (own.reach, other.reach) == (timedelta(days=7), timedelta(days=60))
    assert other.label == "redis:readings.card:{card_id}"
    assert (other.ttl, other.id, other.rows) == (timedelta(days=60, hours=2), "", 0)
    assert [column.name for column in output.of.columns] == ["card_id", "count"]


def test_a_key_of_its_own_name_does_not_hide_a_column() -> None:
    app = hr.App("bank")
    payments = app.stream(Payment, disorder="0 s")
    shop = app.features("shop", key="upper(country) as country", source=payments, ttl="1 d").last("country")
    ((output, target),) = kept(shop, "shop:{country}")
    assert [column.name for column in output.of.columns] == ["country", "country_"]
    assert target.values == (("country_", "country"),)


REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "a topic": (lambda: card().to(hr.App("x").topic("cards")), "cannot hold features"),  # type: ignore[arg-type]
    "a table": (lambda: card().to(hr.postgres("cards", key="card_id")), "cannot hold features"),  # type: ignore[arg-type]
    "another key": (lambda: card().to(hr.redis("card:{country}")), "has the key country, the features have card_id"),
    "too short a ttl": (lambda: card().to(hr.redis("card:{card_id}", ttl="1 d")), "would forget after 1 d"),
}


@pytest.mark.parametrize("mistake", REFUSED)
def test_b4_a_mistake_is_refused_at_its_line(mistake: str) -> None:
    declare, words = REFUSED[mistake]
    with pytest.raises(DeclarationError, match=words) as refused:
        declare()
    assert refused.value.code == "bad-store"
    assert refused.value.where is not None
    assert refused.value.where.file == __file__
