"""The made-up traffic: the same for the same seed, with every kind of fraud in it, and no card number anywhere."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise

import msgspec

from bank.decide import decide
from bank.sample import KNOWN_AFTER, events
from bank.tokens import token
from bank.traffic import Made, Traffic
from headrace.base.clock import HandClock
from headrace.plan.plan import build
from headrace.serve.card_numbers import holds_card_number

START = datetime(2026, 11, 1, tzinfo=UTC)


def history(seed: int = 7, days: int = 4) -> list[Made]:
    return list(Traffic(seed, cards=400, shops=800).history(START, days))


def test_the_same_seed_gives_the_same_life_in_the_order_of_time() -> None:
    first = history()
    assert first == history()
    assert first != history(seed=8)
    assert all(one.payment.at <= other.payment.at for one, other in pairwise(first))
    assert len({made.payment.payment_id for made in first}) == len(first)


def test_every_kind_of_fraud_is_in_it_and_most_is_life() -> None:
    made = list(Traffic(7, cards=1500, shops=800).history(START, 8))
    kinds = Counter(one.fraud for one in made)
    assert set(kinds) == {"", "large", "terminal", "stolen", "travel", "guessing"}
    assert 0.95 < kinds[""] / len(made) < 0.999

    mean = {holder.card_id: holder.mean for holder in Traffic(7, cards=1500, shops=800).holders}
    stolen = [float(one.payment.amount) / mean[one.payment.card_id] for one in made if one.fraud == "stolen"]
    assert 3 < sum(stolen) / len(stolen) < 7


def test_live_frauds_last_seconds_and_are_told_of_later() -> None:
    clock = HandClock(START)

    def now() -> datetime:
        clock.advance(timedelta(milliseconds=50))
        return clock.now()

    made = list(islice(Traffic(7, cards=400, shops=800).live(now), 2000))
    kinds = Counter(one.fraud for one in made)
    assert set(kinds) == {"", "large", "terminal", "stolen", "travel", "guessing"}
    assert kinds["stolen"] >= 10
    assert len({one.payment.payment_id for one in made}) == len(made)
    assert not any(holds_card_number(msgspec.to_builtins(one.payment)) for one in made)  # or the service refuses it

    sent = list(islice(events(7, now), 4000))
    paid = {one.payment_id: one for one in sent if not hasattr(one, "fraud")}
    labels = [one for one in sent if hasattr(one, "fraud")]
    assert labels
    assert all(one.at - paid[one.payment_id].at == KNOWN_AFTER for one in labels)


def test_a_card_is_a_token_and_four_digits() -> None:
    for one in history(days=1)[:200]:
        text = msgspec.json.encode(one.payment).decode()
        assert re.search(r"\d{12,19}", text) is None
        assert one.payment.card_id.startswith("card-")
    assert token("4000001234567899", b"one") != token("4000001234567899", b"other")


def test_every_card_that_pays_was_given_out() -> None:
    traffic = Traffic(7, cards=400, shops=800)
    cards = traffic.given_out(START)
    assert len({card.card_id for card in cards}) == 400
    given = {(card.card_id, card.customer_id, card.last4) for card in cards}
    made = [one.payment for one in history()]
    assert {(paid.card_id, paid.customer_id, paid.last4) for paid in made} <= given
    assert {card.card_id for card in Traffic().given_out(START)} >= {
        one.payment.card_id for one in islice(Traffic().live(lambda: START), 500)
    }


def test_cards_are_the_services_own_and_no_part_of_the_flow() -> None:
    known = [(known.column, known.table.name) for known in decide.services[0].known]
    assert known == [("card_id", "cards"), ("customer_id", "customers")]
    assert [topic.compact for topic in decide.topics if topic.name == "cards"] == [True]
    (flow,) = build(decide).flows
    assert "cards" not in flow.topics
