"""dead list, show and retry: nothing that could not be read is lost, and it can be tried again."""

from __future__ import annotations

import pytest

from headrace.log.broker import Broker
from headrace.log.consume import Consumer
from tests.cli.conftest import Headrace
from tests.log.paying import payment_on, until


@pytest.fixture
def broken(broker: Broker, notes: str) -> str:
    """A topic with one record that is no JSON, read by the app `shop`."""
    client = broker.producer({})
    client.produce(notes, b"not json", b"c1", headers=[("trace", b"t-1")], timestamp=1_762_182_000_000)
    client.flush()
    with Consumer(broker, payment_on(notes), group=f"g-{notes}", app="shop") as reader:
        until(lambda: reader.consume(1) or reader.dead)
    return notes


def test_dead_letters_are_counted_listed_and_shown_whole(headrace: Headrace, broken: str) -> None:
    assert {"topic": broken, "dead": 1} in headrace("dead", "list", "--json").json
    (row,) = headrace("dead", "list", broken, "--json").json
    assert (row["id"], row["reason"]) == (f"shop/{broken}/0/0", "undecodable")

    whole = headrace("dead", "show", broken, row["id"], "--json").json
    assert (whole["key"], whole["value"], whole["header trace"]) == ("c1", "not json", "t-1")
    assert whole["time"] == "2025-11-03T15:00:00.000000Z"
    assert f"id            shop/{broken}/0/0" in headrace("dead", "show", broken, row["id"]).out


def test_a_retry_goes_to_the_app_that_failed_and_to_nobody_else(headrace: Headrace, broken: str) -> None:
    said = headrace("dead", "retry", broken)
    assert (said.code, said.err) == (0, "1 sent to be tried again by shop\n")
    (again,) = headrace("tail", f"shop.{broken}.retry", "--json").lines
    assert (again["key"], again["raw"]) == ("c1", "not json")


def test_one_letter_can_be_retried_by_its_id(headrace: Headrace, broken: str) -> None:
    assert headrace("dead", "retry", broken, f"shop/{broken}/0/0", "--json").json == [{"id": f"shop/{broken}/0/0"}]


def test_a_letter_that_is_not_there_is_a_usage_error(headrace: Headrace, broken: str) -> None:
    said = headrace("dead", "show", broken, "shop/x/0/9")
    assert said.code == 2
    assert "dead list" in said.err


def test_no_dead_letters_is_good_news(headrace: Headrace, notes: str) -> None:
    said = headrace("dead", "list", notes)
    assert (said.code, said.out, said.err) == (0, "", f"no dead letters of {notes}\n")
    assert headrace("dead", "list", notes, "--json").json == []
