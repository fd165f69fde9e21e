"""The bank on Spark: twins decide in real time, one answer is kept of each, it replays to the last bit, and no card
number is anywhere."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

import headrace as hr
from bank import people
from bank.backtest import rules_of, trial
from bank.batch import compare
from bank.decide import decide, vectors
from bank.decided import Decided
from bank.events import Act, Payment
from bank.fallback import fallback
from bank.policy import RULES, policy
from bank.record import card, customer, customers, record
from bank.replay import again, differences, read
from bank.run import decided
from bank.tokens import token
from bank.traffic import Made, Traffic
from bank.training import from_lake
from headrace.base.settings import Settings, load
from headrace.log import topics
from headrace.log.broker import Broker
from headrace.log.read import read as messages
from headrace.ops.run import run
from headrace.spark.session import Spark
from headrace.stack.stack import Addresses
from tests.spark.flowing import short_batches, until

DAYS = 3
SEEN = ("seen_card", "seen_terminal", "seen_customer")
KNOWN_AFTER = timedelta(hours=6)


@pytest.fixture
def home(broker: Broker, stack: Addresses, settings: Settings, tmp_path: Path) -> Iterator[Settings]:
    """A home of this test's own, on the tests' broker and Redis. The bank's topics go with it."""
    mine = {"home": str(tmp_path / "home"), "cache": str(settings.cache), "kafka.bootstrap": broker.bootstrap}
    before = set(topics.widths(broker))
    yield load(mine | {"redis.url": stack.redis}, root=tmp_path, env={})
    for name in set(topics.widths(broker)) - before:
        topics.delete(broker, name)


@pytest.fixture
def numbers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every card number that the traffic makes up, as the terminal would have it."""
    found: list[str] = []
    monkeypatch.setattr(people, "token", lambda number: found.append(number) or token(number))  # type: ignore[func-returns-value]
    return found


@pytest.mark.timeout(600)  # a busy machine compiles the flow for a minute
def test_the_bank_decides_keeps_and_replays(
    spark: Spark, broker: Broker, home: Settings, numbers: list[str], tmp_path: Path
) -> None:
    start = datetime.now(UTC) - timedelta(days=DAYS)
    traffic = Traffic(3, cards=40, shops=60, harm=20)
    made = list(traffic.history(start, DAYS))
    known = [one for one in made if one.fraud and one.payment.at < datetime.now(UTC) - KNOWN_AFTER]
    labels = [one.label(one.payment.at + KNOWN_AFTER) for one in known]
    with hr.connect(decide, home) as client, hr.connect(record, home):
        client.send(*traffic.customers(start))
        client.policy("fraud").publish(policy())
        client.send(*heapq.merge((one.payment for one in made), labels, key=lambda event: event.at))

        # when twins decide, each payment is answered twice, alike where they saw the same
        def told() -> dict[str, list[Decided]]:
            found = defaultdict(list)
            for one in client.read(Decided):
                found[one.event.payment_id].append(one.event)
            return found

        with short_batches(spark), run(decide, home, mode="realtime", twins=2, interval="20 s", spark=spark):
            until(lambda: sum(len(both) == 2 for both in told().values()) == len(made), every=0.5, within=300)
        for one, other in told().values():
            assert one == other or [getattr(one, name) for name in SEEN] != [getattr(other, name) for name in SEEN]

        # then any decision comes out of the log again, to the last bit
        past = read(client)
        policies = {f"fraud.policy/0@{one.offset}": one.policy for one in client.policy("fraud").history()}
        some = [past.decided[one.payment.payment_id] for one in made[-100:]]
        different = {one.payment_id: differences(one, again(past, one, policies)) for one in some}
        assert {id: found for id, found in different.items() if found} == {}

        # and one of each is kept, exactly once
        with run(record, home, spark=spark):
            until(lambda: _kept(client, "decisions") == len(made), every=0.5, within=300)
            until(lambda: _kept(client, "labels") == len(labels), every=0.5, within=100)
            until(lambda: client.features(card).get(card_id=made[-1].payment.card_id)["times_30d"] > 0, every=0.5)
            until(lambda: {one.event.pattern for one in client.read(Act)} == {"guessing", "travel"}, every=0.5)
            until(lambda: _profile(client, made[-1].payment) is not None, every=0.5)
        rows = client.query("select * from lake.decisions")
        assert {row["payment_id"]: row["seen_card"] for row in rows} == {
            id: one.seen_card for id, one in past.decided.items()
        }
        assert compare(rows, {one.payment.payment_id for one in made if one.fraud}).frauds > 0
        tried = {one.rule: one for one in trial(client, rules_of(RULES), start)}
        declined = [row for row in rows if "wrong PIN" in row["reasons"]]
        assert (tried["wrong PIN"].payments, tried["wrong PIN"].overlap) == (len(declined), 1.0)
        assert tried["wrong PIN"].frauds > 0
        assert from_lake(client.query).rows > 100
        assert len(decided(client, start, datetime.now(UTC))) == sum(row["pin_ok"] for row in rows)
        for id, count in Counter(one.event.customer_id for one in client.read(Act)).items():
            assert client.features(customer).get(customer_id=id)["acts_7d"] == count
        # a payment that completed a pattern was decided with it
        assert all(past.decided[one.event.payment_id].acts_7d > 0 for one in client.read(Act))
        _speaks_without_the_flow(client, made[-1], Counter(label.terminal_id for label in labels).most_common(1)[0][0])

    # and nowhere is the number of a card
    assert len(numbers) == 40
    written = {topic.name for app in (decide, record) for topic in app.topics} & set(topics.widths(broker))
    assert {"payments", "decisions.raw", "decision-log", "fraud.policy"} <= written
    places = [text for topic in written for text in _records(broker, topic)]
    places += [file.read_bytes() for folder in (tmp_path, spark.log.parent) for file in _files(folder)]
    assert [number for number in numbers if any(number.encode() in text for text in places)] == []


def _kept(client: Any, table: str) -> int:
    try:
        return int(client.query(f"select count(*) as n from lake.{table}")[0]["n"])
    except hr.HeadraceError:  # the first batch makes the table
        return 0


def _profile(client: Any, payment: Payment) -> Any:
    """What the customer may spend in a day, as Redis has it."""
    return client.ahead(vectors, customers)(payment)["day_limit"]


def _speaks_without_the_flow(client: Any, made: Made, bad_terminal: str) -> None:
    """The service's fallback, over what Redis has."""
    speak, now = fallback(vectors)(client), datetime.now(UTC)
    usual = msgspec.structs.replace(made.payment, payment_id="x", at=now, pin_ok=True, amount=hr.money(5))
    assert speak(usual)["decision"] in ("allow", "review", "decline")
    assert speak(msgspec.structs.replace(usual, pin_ok=False))["reasons"] == ["wrong PIN"]
    stranger: Payment = msgspec.structs.replace(usual, card_id="card-nobody")
    assert speak(stranger)["decision"] == "allow"
    there: Payment = msgspec.structs.replace(stranger, terminal_id=bad_terminal)
    assert speak(there)["reasons"] == ["frauds at this terminal became known"]
    over: Payment = msgspec.structs.replace(stranger, amount=_profile(client, stranger) + hr.money(1))
    assert speak(over)["reasons"] == ["over the limit of a day"]


def _records(broker: Broker, topic: str) -> Iterator[bytes]:
    return (b"%s %s" % (one.key() or b"", one.value() or b"") for one in messages(broker, topic))


def _files(folder: Path) -> Iterator[Path]:
    return (file for file in folder.rglob("*") if file.is_file())
