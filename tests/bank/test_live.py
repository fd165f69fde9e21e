"""The bank on Spark: twins decide in real time, one answer is kept of each, it replays to the last bit, and no card
number is anywhere."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

import headrace as hr
from bank.app import bank
from bank.backtest import rules_of, trial
from bank.batch import Recorded, compare
from bank.decide import decide, vectors
from bank.decided import Decided
from bank.events import Act, Label, Payment
from bank.fallback import fallback
from bank.known import frauds
from bank.policy import RULES
from bank.record import customer, record, terminal
from bank.replay import again, differences, read
from bank.training import from_lake
from headrace.base.settings import Settings, load
from headrace.log import topics
from headrace.log.broker import Broker
from headrace.log.codec import Codec
from headrace.log.read import read as messages
from headrace.ops.features import reader
from headrace.serve.card_numbers import holds_card_number
from headrace.spark.session import Spark
from headrace.stack.stack import Addresses
from tests.bank.living import AGAIN, HALL, PAST, WRONG, Life, lived, profile
from tests.bank.searching import Places, places

pytestmark = pytest.mark.timeout(1500)  # all of them wait for one life of the bank, on a machine that is busy
SEEN = ("seen_card", "seen_terminal", "seen_customer", "seen_profile", "policy_seen")


@pytest.fixture(scope="module")
def life(
    spark: Spark, broker: Broker, stack: Addresses, settings: Settings, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Life]:
    """In a home of its own, on the tests' broker and Redis. The bank's topics go with it."""
    folder = tmp_path_factory.mktemp("bank")
    mine = {"home": str(folder / "home"), "cache": str(settings.cache), "kafka.bootstrap": broker.bootstrap,
            "redis.url": stack.redis}  # fmt: skip
    before = set(topics.widths(broker))
    try:
        with lived(spark, broker, load(mine, root=folder, env={}), mine) as life:
            yield life
    finally:
        for name in set(topics.widths(broker)) - before:
            topics.delete(broker, name)


@pytest.fixture(scope="module")
def found(life: Life, spark: Spark, broker: Broker, stack: Addresses) -> Places:
    """All that the bank wrote."""
    mine = {topic.name for app in (decide, record) for topic in app.topics}
    return places(spark, broker, stack.redis, {t for t in topics.widths(broker) if t.removesuffix(".dead") in mine},
                  life.folder)  # fmt: skip


def test_each_payment_is_answered_by_both_twins_alike_where_they_saw_the_same(life: Life) -> None:
    told = life.told()
    assert {id: len(both) for id, both in told.items()} == dict.fromkeys(life.ids, 2)
    same = {id for id, (one, other) in told.items() if _seen(one) == _seen(other)}
    different = {id: differences(*told[id]) for id in same}
    assert {id: found for id, found in different.items() if found} == {}
    # Payments of several partitions that are there all at once reach a terminal in any order; one by one they do not.
    singly = life.ids[PAST:]
    assert sum(id in same for id in singly) >= 0.9 * len(singly) > 400


def test_a_thousand_decisions_come_out_of_the_log_again_to_the_last_bit(life: Life) -> None:
    past = read(life.client)
    policies = {f"fraud.policy/0@{one.offset}": one.policy for one in life.client.policy("fraud").history()}
    different = {id: differences(one, again(past, one, policies)) for id, one in past.decided.items()}
    assert len(different) >= 1000
    assert {id: found for id, found in different.items() if found} == {}


def test_the_decision_takes_three_shuffles(life: Life) -> None:
    assert [(plan.count("TransformWithState "), plan.count("Exchange ")) for plan in life.plans] == [(5, 3)] * 2


def test_what_was_decided_is_kept_once(life: Life, broker: Broker) -> None:
    """Both twins told it, and some payments came twice."""
    first = read(life.client).decided
    log, codec = list(messages(broker, "decision-log")), Codec(Decided)
    assert len(log) == len(life.ids)
    assert {one.payment_id: one for one in map(_value(codec), log)} == first
    assert _ids(broker, "decisions") == Counter(life.ids)
    assert _ids(broker, "payments.twice") == Counter(life.ids[PAST - AGAIN : PAST] * 2)
    stopped = [id for id, one in first.items() if one.decision != "allow"]
    assert _ids(broker, "fraud-alerts") == Counter(stopped)
    assert 10 < len(stopped) < len(life.ids) / 5
    rows = life.client.query("select payment_id, seen_card from lake.decisions")
    assert sorted((row["payment_id"], row["seen_card"]) for row in rows) == sorted(
        (id, one.seen_card) for id, one in first.items()
    )


def test_who_asks_what_is_kept_is_told(life: Life) -> None:
    client, rows = life.client, life.client.query("select * from lake.decisions")
    assert compare(rows, {one.payment.payment_id for one in life.made if one.fraud}).frauds > 0
    tried = {one.rule: one for one in trial(client, rules_of(RULES), life.start)}
    declined = [row for row in rows if "wrong PIN" in row["reasons"]]
    assert (tried["wrong PIN"].payments, tried["wrong PIN"].overlap) == (len(declined), 1.0)
    assert tried["wrong PIN"].frauds > 0
    assert from_lake(client.query).rows > 100
    told = [one.event for one in client.read(Recorded)]  # by the hourly job
    assert sorted((one.payment_id, one.pin_ok) for one in told) == sorted((r["payment_id"], r["pin_ok"]) for r in rows)
    acts = list(client.read(Act))
    for id, count in Counter(one.event.customer_id for one in acts).items():
        assert client.features(customer).get(customer_id=id)["acts_7d"] == count
    # a payment that completed a pattern was decided with it
    first = read(client).decided
    assert all(first[one.event.payment_id].acts_7d > 0 for one in acts)


def test_what_a_person_says_of_a_payment_is_known_to_features_and_training(life: Life) -> None:
    id = life.reviewed["payment_id"]
    assert read(life.client).decided[id].decision == "review"
    (label,) = (one.event for one in life.client.read(Label) if one.event.by == "ann")
    assert (label.payment_id, label.fraud, label.terminal_id) == (id, 1, life.reviewed["terminal_id"])
    assert id in frauds(life.client.query)
    at_terminal = life.client.features(terminal).get(terminal_id=label.terminal_id)
    assert at_terminal["frauds_28d"] >= 1


def test_the_service_speaks_without_the_flow(life: Life) -> None:
    """The fallback, over what Redis has."""
    bad = Counter(label.terminal_id for label in life.labels)
    acted = {one.event.customer_id for one in life.client.read(Act)}
    quiet = (one.payment for one in reversed(life.made) if one.payment.customer_id not in acted)
    payment = next(one for one in quiet if one.terminal_id not in bad)
    speak, now = fallback(vectors)(life.client), datetime.now(UTC)
    usual = msgspec.structs.replace(payment, payment_id="x", at=now, pin_ok=True, amount=hr.money(5))
    assert speak(msgspec.structs.replace(usual, pin_ok=False))["reasons"] == ["wrong PIN"]
    stranger: Payment = msgspec.structs.replace(usual, card_id="card-nobody")
    assert speak(stranger)["decision"] == "allow"
    there: Payment = msgspec.structs.replace(stranger, terminal_id=bad.most_common(1)[0][0])
    assert speak(there)["reasons"] == ["frauds at this terminal became known"]
    over: Payment = msgspec.structs.replace(stranger, amount=profile(life.client, stranger) + hr.money(1))
    assert speak(over)["reasons"] == ["over the limit of a day"]


def test_bad_requests_and_those_with_card_numbers_are_refused(life: Life) -> None:
    assert {place: answer.status for place, answer in life.refused.items()} == {
        **dict.fromkeys(["payment_id", "card_id", "customer_id", "terminal_id", "country", "last4", "note"], 422),
        **dict.fromkeys(["spaced", "amount", "a name", "label by", "snooze by", "stranger", *WRONG], 422),
        "paid with other content": 409,
        **dict.fromkeys(["path", "label", "snooze"], 404),
        "torn": 400,
        "key": 401,
        "query": 422,
    }
    codes = {place: life.refused[place].code for place in WRONG}
    assert Counter(codes.values()) == {"check-failed": 11, "clock-ahead": 1, "too-old": 1, "unknown-key": 1}
    assert all(holds_card_number(life.numbers[place]) for place in life.refused if place in life.numbers)
    assert {id: answer.status for id, answer in life.paid.items()} == dict.fromkeys(life.paid, 200)
    said = repr([*life.refused.values(), *life.paid.values()])
    assert [place for place, number in life.numbers.items() if number in said] == []


def test_the_number_of_a_card_is_nowhere(life: Life, found: Places) -> None:
    leaks = {place: [name for name, number in life.numbers.items() if number.encode() in text]
             for place, text in found.items()}  # fmt: skip
    assert {place: names for place, names in leaks.items() if names} == {}


def test_what_was_searched_for_numbers_could_be_read(found: Places) -> None:
    """The name of the terminal where they were planted is where they would be, and each other place has something else
    that was put there."""
    known = {place for place, text in found.items() if HALL.encode() in text}
    topics = {"payments", "payments.dead", "decisions.raw", "decision-log", "fraud-alerts"}
    assert known >= {f"topic {name}" for name in topics}
    assert known >= {"lake decisions parquet", "state decide changelog", "redis"}
    for text, where in {
        b"card-": {"topic payments.twice", "topic labels", "topic acts", "topic cards", "topic decisions",
                   "lake labels parquet", "lake acts parquet", "state record changelog"},
        b"customer-": {"topic customers"},
        b"wrong PIN": {"topic fraud.policy"},
        b"late": {"topic payments.decide.degraded"},
        b"ready": {"file service.log"},
        b"decide": {"log spark"},
    }.items():  # fmt: skip
        assert {place for place in where if text not in found.get(place, b"")} == set(), text
    # Spark puts all of a state together when it has time to.
    whole = {place for place in ("state decide sst", "state record sst") if found.get(place)}
    assert whole == {place for place in whole if re.search(rb"card-|customer-|[a-z]{2}-\d{5}", found[place])}


@pytest.mark.parametrize(("app", "name"), [(decide, "card"), (decide, "terminal"), (record, "customer")])
def test_logged_features_are_those_that_the_lake_gives(life: Life, app: hr.App, name: str) -> None:
    """Of payments that came as they do in life. Labels have a topic of their own: one that comes with a payment may be
    known to it or not."""
    singly = set(life.ids[PAST:])
    rows = [row for row in life.client.query("select * from lake.decisions") if row["payment_id"] in singly]
    with reader(app, name, life.home, beside=(bank, decide, record)) as asked:
        checked = asked.check(rows, source="lake.decisions")
    assert (checked.rows, checked.missing) == (len(singly), 0)
    assert {one.feature for one in checked.features if one.rate < 1} <= {"frauds_28d"}
    assert all(one.rate > 0.95 for one in checked.features)


def _seen(one: Decided) -> tuple[Any, ...]:
    return tuple(getattr(one, name) for name in SEEN)


def _value(codec: Codec[Decided]) -> Any:
    return lambda message: codec.decode(message.value())


def _ids(broker: Broker, topic: str) -> Counter[str]:
    return Counter(msgspec.json.decode(message.value())["payment_id"] for message in messages(broker, topic))
