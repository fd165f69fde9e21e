"""groups, lag and seek: who reads, how far behind, and what a move would mean before it is made."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from headrace.base.ids import random_id
from headrace.log.broker import Broker
from headrace.log.consume import Consumer
from headrace.log.produce import Producer
from tests.cli.conftest import Headrace
from tests.log.paying import payment_on, payments, until


@pytest.fixture
def group(broker: Broker, notes: str) -> str:
    """A group that has read four of ten records, and left."""
    cls, name = payment_on(notes), f"g-{random_id()[:8]}"
    with Producer(broker, cls) as producer:
        producer.send_many(payments(cls, 10))
    with Consumer(broker, cls, group=name, commit="manual") as reader:
        for count, record in enumerate(reader.records(idle="20 s"), start=1):
            if count == 4:
                reader.commit(record)
                break
    return name


def test_lag_is_told_per_partition_in_records_and_seconds(headrace: Headrace, group: str, notes: str) -> None:
    (row,) = headrace("lag", group, "--json").json
    unread = datetime(2026, 11, 3, 15, 0, 4, tzinfo=UTC)  # the fifth payment's own time
    assert row.pop("seconds_behind") == pytest.approx((datetime.now(UTC) - unread).total_seconds(), abs=60)
    assert row == {
        "group": group,
        "topic": notes,
        "partition": 0,
        "committed": 4,
        "end": 10,
        "records_behind": 6,
    }
    assert headrace("lag", group).out.split("\n")[0].split() == [
        *("group", "topic", "partition", "committed", "end", "records", "behind", "seconds", "behind")
    ]


def test_a_group_is_listed_with_its_members(headrace: Headrace, broker: Broker, group: str, notes: str) -> None:
    (empty,) = [row for row in headrace("groups", "--json").json if row["group"] == group]
    assert empty == {"group": group, "state": "empty", "members": []}

    with Consumer(broker, payment_on(notes), group=group, member="till-1") as reader:
        until(lambda: reader.consume(1))
        (one,) = [row for row in headrace("groups", "--json").json if row["group"] == group]
        assert (one["state"], one["members"][0]["name"]) == ("stable", "till-1")
        assert one["members"][0]["partitions"] == [f"{notes}/0"]
        assert [group, "stable", "1", notes] in [line.split() for line in headrace("groups").out.splitlines()]


def test_seek_says_what_would_be_read_again_and_changes_nothing(headrace: Headrace, group: str, notes: str) -> None:
    said = headrace("seek", group, notes, "--to", "earliest")
    assert said.code == 0
    assert said.out == "partition  at  to  read again  skipped\n        0   4   0           4        0\n"
    assert "would move" in said.err
    assert "4 records are read again, 0 are skipped" in said.err
    assert "nothing was changed; add --yes to do it" in said.err
    assert headrace("lag", group, "--json").json[0]["committed"] == 4


@pytest.mark.parametrize(
    ("to", "place", "again", "skipped"),
    [("earliest", 0, 4, 0), ("latest", 10, 0, 6), ("7", 7, 0, 3), ("2026-11-03T15:00:02Z", 2, 2, 0)],
)
def test_seek_with_yes_moves_the_group(
    headrace: Headrace, group: str, notes: str, to: str, place: int, again: int, skipped: int
) -> None:
    said = headrace("seek", group, notes, "--to", to, "--yes", "--json")
    assert said.json == {
        "group": group,
        "topic": notes,
        "done": True,
        "moves": [{"partition": 0, "at": 4, "to": place, "read_again": again, "skipped": skipped}],
    }
    assert headrace("lag", group, "--json").json[0]["committed"] == place


def test_an_active_group_is_not_moved(headrace: Headrace, broker: Broker, group: str, notes: str) -> None:
    with Consumer(broker, payment_on(notes), group=group) as reader:
        until(lambda: reader.consume(1))
        said = headrace("seek", group, notes, "--to", "earliest", "--yes", "--json")
    assert said.code == 1
    assert msgspec.json.decode(said.err)["code"] == "group-active"


@pytest.mark.parametrize("command", [("lag", "grop"), ("seek", "grop", "{topic}", "--to", "earliest")])
def test_a_group_that_is_not_there_is_an_error(headrace: Headrace, notes: str, command: tuple[str, ...]) -> None:
    said = headrace(*(word.format(topic=notes) for word in command), "--json")
    assert (said.code, msgspec.json.decode(said.err)["code"]) == (1, "group-missing")


def test_a_place_that_is_none_is_a_usage_error(headrace: Headrace, group: str, notes: str) -> None:
    assert headrace("seek", group, notes, "--to", "the middle").code == 2


def test_times_far_back_mean_the_beginning(headrace: Headrace, group: str, notes: str) -> None:
    long_ago = (datetime.now(UTC) - timedelta(days=3650)).date().isoformat()
    assert headrace("seek", group, notes, "--to", long_ago, "--json").json["moves"][0]["to"] == 0
