"""Decisions once more, from the log alone: the same to the last bit."""

from __future__ import annotations

import heapq
import re
from collections import Counter
from datetime import timedelta
from typing import Any
from zlib import crc32

import msgspec
import pytest

import headrace as hr
from bank.decide import decide
from bank.decided import Decided
from bank.events import Customer, Label, Payment
from bank.policy import RULES, policy
from bank.replay import Instead, Past, again, differences
from bank.traffic import Traffic
from headrace.base.settings import Settings
from headrace.log import topics
from headrace.model.event import event_type
from tests.bank.deciding import START, pay
from tests.bank.saying import Said

DAYS = 5
KNOWN_AFTER = timedelta(days=1)
PARTITIONS = {"payments": 3, "labels": 1, "customers": 1}


@pytest.fixture(scope="module")
def past() -> Past:
    """A log of three partitions and the decisions on it, by a policy that was replaced on the way."""
    traffic, found, ends = Traffic(5, cards=110, shops=200, harm=6), Past(), Counter[tuple[str, int]]()
    made = list(traffic.history(START, DAYS))
    labels = [one.label(one.payment.at + KNOWN_AFTER) for one in made if one.fraud]
    events = heapq.merge((one.payment for one in made), labels, key=lambda event: event.at)
    with hr.testing.run(decide, partitions=PARTITIONS, now=START + timedelta(days=DAYS + 1), realtime=True) as t:
        t.send(*traffic.customers(START))
        t.policy("fraud", hr.Policy.read(RULES))
        for number, event in enumerate(events):
            if number == 500:
                t.policy("fraud", policy())
            topic = event_type(type(event)).topic
            partition = crc32(event.card_id.encode()) % PARTITIONS[topic]
            t.send(event, partition=partition)
            found.add(event, topic, partition, ends[topic, partition])
            ends[topic, partition] += 1
        for row in t.read("decisions.raw"):
            found.add(Decided(**row.as_dict()), "decisions.raw", 0, 0)
    return found


POLICIES = {"fraud.policy/0@0": hr.Policy.read(RULES), "fraud.policy/0@1": policy()}


def test_a_thousand_decisions_come_out_the_same_to_the_last_bit(past: Past) -> None:
    told = list(past.decided.values())[-1000:]
    assert len(told) == 1000
    assert {one.policy_seen for one in past.decided.values()} == POLICIES.keys()
    assert Counter(one.decision for one in told)["allow"] < 1000
    assert [one.payment_id for one in told if differences(one, again(past, one, POLICIES))] == []


def test_a_decision_that_is_not_what_was_known_is_found_out(past: Past) -> None:
    told = next(one for one in past.decided.values() if one.decision != "allow")
    forged = msgspec.structs.replace(told, decision="allow", spent_1h=told.spent_1h + 1)
    assert differences(forged, again(past, forged, POLICIES)).keys() == {"decision", "spent_1h"}


def test_a_row_that_was_passed_on_the_way_is_left_out(past: Past) -> None:
    busy: Any = max(past.terminals.values(), key=len)
    told = past.decided[[one.event for one in busy if one.topic == "payments"][-1].payment_id]
    rows, _ = past.seen_by(told)
    late = next(one for one in rows if one.event.card_id != told.card_id and told.at - one.event.at < timedelta(days=1))
    short = Past()
    for one in rows:
        if one is not late:
            short.add(one.event, one.topic, one.partition, one.offset)
    partial = again(short, told, POLICIES)  # what it would have said without that row
    assert partial.seen_terminal != told.seen_terminal
    assert differences(partial, again(past, partial, POLICIES)) == {}


def test_a_payment_or_a_policy_that_is_gone_is_told(past: Past) -> None:
    told = next(one for one in past.decided.values() if one.decision != "allow")
    with pytest.raises(hr.HeadraceError, match=f"the payment {told.payment_id} is not on the log"):
        again(Past(decided=past.decided), told, POLICIES)
    with pytest.raises(hr.HeadraceError, match=f"the policy at {told.policy_seen} is not on the log"):
        again(past, told, {})
    shadow = msgspec.structs.replace(told, shadow='{"policy_seen": "fraud.policy/0@7"}')
    with pytest.raises(hr.HeadraceError, match=r"the policy at fraud\.policy/0@7 is not on the log"):
        again(past, shadow, POLICIES)


@pytest.fixture
def logged(desk: Settings) -> list[Decided]:
    """A small history on a real log, decided by the reference; one decision did not get there. Two cards are of one
    customer, and two pay at one terminal."""
    of_card = (("u1", "t2"), ("u1", "t1"), ("u2", "t1"))
    paid = []
    for number in range(21):
        customer, terminal = of_card[number % 3]
        far = {"lat": -23.55, "lon": -46.63} if number in (6, 20) else {}
        mine = {"card_id": f"card-{number % 3}", "customer_id": customer, "terminal_id": terminal}
        paid.append(pay(number, START + timedelta(minutes=number), **mine, **far))
    known = Label("p1", "card-1", "t1", "u1", hr.money(20), 1, "somebody", START + timedelta(minutes=10, seconds=1))
    with hr.connect(decide, desk) as client:
        client.send(Customer("u1", "CH", START, hr.money(1000), START), *paid, known)
        seen = client.policy("fraud").publish(policy())
        rows = heapq.merge(client.read(Payment), client.read(Label), key=lambda one: one.event.at)
        widths = topics.widths(client.broker)
        partitions = {name: widths[name] for name in ("payments", "labels")} | {"customers": 1}
        with hr.testing.run(decide, partitions=partitions, now=START + timedelta(days=1), realtime=True) as t:
            t.policy("fraud", policy(), offset=seen)
            t.send(Customer("u1", "CH", START, hr.money(1000), START))
            for one in rows:
                t.send(one.event, partition=one.partition, offset=one.offset)
            found = [Decided(**row.as_dict()) for row in t.read("decisions.raw")]
        there = [one for one in found if one.payment_id != "p19"]
        client.send(*there, *there)  # of two twins
        late = START + timedelta(minutes=20)
        client.send(
            Instead("p20", "review", ["no answer in time"], "deadline", "default", late),
            Instead("p19", "allow", [], "not-recorded", "fallback", late),
        )
    return found


def test_the_command_decides_once_more_from_the_log(
    logged: list[Decided], desk: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    last = logged[-1]
    said = Said(capsys, "replay-decision", "p20")
    assert (said.code, last.decision) == (0, "decline")
    assert said.out.startswith("p20: decline, because: nobody travels that fast")
    assert f"  seen_card      {last.seen_card}\n" in said.out
    assert said.out.splitlines()[-2:] == [
        "the terminal was told: review, because: no answer in time (by the default: deadline)",
        "the same to the last bit",
    ]
    reading = [f"reading {what}" for what in ("degraded answers", "decisions", "payments", "labels")]
    assert said.err.splitlines() == [*reading, "deciding once more"]

    said = Said(capsys, "replay-decision", "p7", "--json")
    assert (said.code, said.json["told_instead"], said.json["different"]) == (0, None, {})
    assert said.json["decision"]["acts_7d"] == 1  # with the other card of this customer
    assert said.json["decision"]["seen_terminal"] == logged[7].seen_terminal
    assert Said(capsys, "replay-decision", "p20", "--json").json["told_instead"]["by"] == "default"

    # when the first decision on the log says something else
    with hr.connect(decide, desk) as client:
        (lost,) = (one for one in logged if one.payment_id == "p19")
        client.send(msgspec.structs.replace(lost, spent_1h=hr.money(1)))
    said = Said(capsys, "replay-decision", "p19")
    assert said.code == 1
    assert re.search(r"^DIFFERENT:\n  spent_1h +was 1\.00, and is \d", said.out, re.MULTILINE)


def test_a_payment_that_was_not_decided_is_told(logged: list[Decided], capsys: pytest.CaptureFixture[str]) -> None:
    said = Said(capsys, "replay-decision", "p-nobody")
    assert (said.code, said.out) == (1, "")
    assert "no decision about 'p-nobody' is on the log [failed]\n  why:   decisions.raw has none\n" in said.err
    said = Said(capsys, "replay-decision", "p19")
    assert (said.code, said.out) == (1, "")
    assert "why:   the terminal was told allow by the fallback (not-recorded), and the flow has not decided" in said.err
