"""The review queue without a broker: what of it is kept, and which word counts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

import headrace as hr
from headrace.base.errors import DataError
from headrace.log.codec import Codec
from headrace.model.service import Service
from headrace.serve.reviews import Reviews
from tests.serve.asking import declared

START = datetime(2026, 11, 3, 15, tzinfo=UTC)


def queue() -> tuple[Service, Reviews]:
    service = declared("t").services[0]
    return service, Reviews(service)


def alert(reviews: Reviews, id: str) -> None:
    row = {"payment_id": id, "card_id": "c1", "amount": "600.00", "decision": "review"}
    reviews.alerted(id, row)


def label(service: Service, reviews: Reviews, id: str, *, fraud: int, second: int) -> None:
    assert service.label is not None
    said = service.label.cls(id, "c1", hr.money(600), fraud, "ann", START + timedelta(seconds=second))
    reviews.labelled(id, Codec(service.label.cls).encode(said)[1])


def test_of_all_that_was_labelled_the_last_ones_are_kept() -> None:
    service, reviews = queue()
    for number in range(5_000):
        alert(reviews, f"p-{number}")
    for number in reversed(range(5_000)):  # a partition after the other: not in the order of time
        label(service, reviews, f"p-{number}", fraud=1, second=number)
    reviews.settle()
    assert [one.id for one in reviews.done(most=10_000)] == [f"p-{number}" for number in range(4_999, 3_999, -1)]

    for number in range(5_000, 7_000):
        alert(reviews, f"p-{number}")
        label(service, reviews, f"p-{number}", fraud=1, second=number)
    kept = [one.id for one in reviews.done(most=10_000)]
    assert kept[:1_000] == [f"p-{number}" for number in range(6_999, 5_999, -1)]
    assert len(kept) <= 2_000


def test_a_label_may_come_before_its_alert_and_a_correction_too() -> None:
    service, reviews = queue()
    label(service, reviews, "p-1", fraud=0, second=2)
    label(service, reviews, "p-1", fraud=1, second=1)  # said before
    alert(reviews, "p-1")
    alert(reviews, "p-1")  # of the other twin
    assert len(reviews) == 0
    (one,) = reviews.done()
    assert one.said is not None
    assert (one.said.fraud, one.said.by) == (False, "ann")


def test_a_label_that_cannot_be_read_ends_the_waiting_all_the_same() -> None:
    service, reviews = queue()
    assert service.label is not None
    alert(reviews, "p-1")
    alert(reviews, "p-2")
    with pytest.raises(DataError):
        reviews.take(service.label.topic, "p-1", {}, b'{"payment_id": "p-1", "fraud": 1, "amount": "600.00"}')
    assert [one.id for one in reviews.due(START)] == ["p-2"]
    assert reviews.done() == []
