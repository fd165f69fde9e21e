"""Decisions once more, from the log alone: the same to the last bit."""

from __future__ import annotations

import heapq
from collections import Counter
from datetime import timedelta
from typing import Any
from zlib import crc32

import msgspec
import pytest

import headrace as hr
from bank.decide import decide
from bank.decided import Decided
from bank.policy import RULES, policy
from bank.replay import Past, again, differences
from bank.traffic import Traffic
from headrace.model.event import event_type
from tests.bank.deciding import START

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
