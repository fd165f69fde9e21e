"""Groups seen from outside: members, lag, and moving them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import pytest

from headrace.base.errors import GroupActive, TopicMissing, UsageError
from headrace.base.ids import random_id
from headrace.base.money import money
from headrace.log import groups
from headrace.log.broker import Broker
from headrace.log.consume import Consumer
from tests.log.paying import START, Declare, ids, payments, send, topic_of


@pytest.fixture
def group() -> str:
    return f"g-{random_id()[:12]}"


@pytest.fixture
def payment(broker: Broker, declare: Declare, group: str) -> Any:
    """Twenty payments in one partition, of which the group has read eight."""
    declared = declare()
    send(broker, declared, payments(declared, 20))
    with Consumer(broker, declared, group=group) as consumer:
        list(islice(consumer, 8))
    return declared


def read_on(broker: Broker, payment: Any, group: str, count: int) -> list[str]:
    with Consumer(broker, payment, group=group) as consumer:
        return ids(islice(consumer, count))


def test_a_group_shows_its_members_and_their_partitions(broker: Broker, payment: Any, group: str) -> None:
    (empty,) = groups.describe(broker, group)
    assert (empty.state, empty.members) == ("empty", ())
    with Consumer(broker, payment, group=group, member="desk-1") as consumer:
        next(iter(consumer))
        (found,) = [one for one in groups.listing(broker) if one.name == group]
    assert found.state == "stable"
    assert [(member.name, member.places) for member in found.members] == [("desk-1", ((topic_of(payment), 0),))]
    assert groups.describe(broker, "nobody")[0].state == "dead"


def test_lag_in_records_and_in_seconds(broker: Broker, declare: Declare, group: str) -> None:
    payment = declare()
    now = datetime.now(UTC)
    minutes_ago = [payment(f"p{n}", "c", money(1), now - timedelta(minutes=10 - n)) for n in range(4)]
    send(broker, payment, minutes_ago)
    with Consumer(broker, payment, group=group) as consumer:
        list(islice(consumer, 1))
    (lag,) = groups.lag(broker, group)
    assert (lag.topic, lag.partition, lag.committed, lag.end, lag.records) == (topic_of(payment), 0, 1, 4, 3)
    assert 540 <= lag.seconds < 570  # the next one to read is nine minutes old
    read_on(broker, payment, group, 3)
    assert [(lag.records, lag.seconds) for lag in groups.lag(broker, group)] == [(0, 0.0)]


def test_a_member_that_has_committed_nothing_lags_from_the_beginning(broker: Broker, payment: Any) -> None:
    fresh = f"g-{random_id()[:12]}"
    with Consumer(broker, payment, group=fresh, commit="manual") as consumer:
        next(iter(consumer))
        assert [(lag.committed, lag.records) for lag in groups.lag(broker, fresh)] == [(None, 20)]


def test_a_stopped_group_lags_also_where_it_has_committed_nothing(broker: Broker, declare: Declare, group: str) -> None:
    payment = declare(partitions=3)
    send(broker, payment, payments(payment, 30))
    with Consumer(broker, payment, group=group) as consumer:
        (record,) = islice(consumer, 1)
    found = groups.lag(broker, group)
    assert [lag.partition for lag in found if lag.committed is not None] == [record.partition]
    assert [lag.partition for lag in found] == [0, 1, 2]
    assert sum(lag.records for lag in found) == 29


@pytest.mark.parametrize(
    ("to", "again", "skipped", "first"),
    [
        ("earliest", 8, 0, "p0"),
        ("latest", 0, 12, None),
        (5, 3, 0, "p5"),
        (10, 0, 2, "p10"),
        (START + timedelta(seconds=15), 0, 7, "p15"),
        (1_000, 0, 12, None),
    ],
)
def test_a_seek_says_what_is_read_again_and_what_is_skipped_then_does_it(
    broker: Broker, payment: Any, group: str, to: Any, again: int, skipped: int, first: str | None
) -> None:
    planned = groups.seek(broker, group, topic_of(payment), to, dry_run=True)
    (move,) = planned.moves
    assert (move.at, move.again, move.skipped) == (8, again, skipped)
    assert str(planned) == f"{group} in {topic_of(payment)}: {again} records are read again, {skipped} are skipped"
    assert groups.lag(broker, group)[0].committed == 8  # nothing has moved yet
    assert groups.seek(broker, group, topic_of(payment), to) == planned
    (lag,) = groups.lag(broker, group)
    assert lag.records == 12 + again - skipped
    if first:
        assert read_on(broker, payment, group, 1) == [first]


def test_a_group_that_is_reading_cannot_be_moved(broker: Broker, payment: Any, group: str) -> None:
    with Consumer(broker, payment, group=group, member="desk-1") as consumer:
        next(iter(consumer))
        assert groups.seek(broker, group, topic_of(payment), "earliest", dry_run=True).moves  # looking is free
        with pytest.raises(GroupActive) as refused:
            groups.seek(broker, group, topic_of(payment), "earliest")
    assert refused.value.what == f"group {group!r} has 1 active member"
    assert refused.value.fix == "stop desk-1, then try again"


def test_goals_that_make_no_sense(broker: Broker, payment: Any, group: str) -> None:
    with pytest.raises(UsageError, match="no place in a topic"):
        groups.seek(broker, group, topic_of(payment), "somewhere")
    with pytest.raises(TopicMissing):
        groups.seek(broker, group, "nobody-made-this", "earliest")


def test_a_deleted_group_starts_anew(broker: Broker, payment: Any, group: str) -> None:
    groups.delete(broker, group)
    assert read_on(broker, payment, group, 1) == ["p0"]
