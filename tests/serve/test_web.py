"""The review queue, the live events and the page, over HTTP."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from headrace.base.clock import rfc3339
from headrace.log.broker import Broker
from headrace.model.service import Service
from headrace.ops.reviews import due
from tests.log.paying import until
from tests.serve.asking import KEY, Caller, made, on_log, serving, write


@pytest.fixture(scope="module")
def service(broker: Broker) -> Service:
    return made(broker)


@pytest.fixture(scope="module")
def desk(service: Service, broker: Broker) -> Iterator[Caller]:
    with serving(service, broker) as caller:
        yield caller


def alert(id: str, decision: str = "review", amount: str = "600.00") -> dict[str, Any]:
    return {
        "payment_id": id,
        "card_id": "c1",
        "amount": amount,
        "decision": decision,
        "reasons": ["amount against the card's mean"],
        "at": rfc3339(datetime.now(UTC)),
    }


def waiting(desk: Caller, query: str = "") -> list[str]:
    answer = until(lambda: (said := desk.call("GET", f"/reviews{query}")).status == 200 and said)
    return [row["payment_id"] for row in answer.body["reviews"]]


def events(desk: Caller, count: int) -> list[tuple[str, Any]]:
    """The first server-sent events that come."""
    connection = http.client.HTTPConnection(desk.at, timeout=30)
    connection.request("GET", "/live", headers={"X-Api-Key": KEY})
    answer, found = connection.getresponse(), []
    while len(found) < count:
        name, data, _ = answer.readline(), answer.readline(), answer.readline()
        found.append((name.decode().split()[1], msgspec.json.decode(data.removeprefix(b"data: "))))
    connection.close()
    return found


def test_reviews_are_listed_snoozed_and_labelled(desk: Caller, service: Service, broker: Broker) -> None:
    assert service.alerts is not None
    assert service.label is not None
    write(broker, service.alerts.name, alert("v-1"), alert("v-2"), alert("v-3", "decline"))
    until(lambda: waiting(desk) == ["v-1", "v-2"])

    later = rfc3339(datetime.now(UTC) + timedelta(hours=1))
    assert desk.call("POST", "/reviews/v-1/snooze", {"until": later, "by": "ann"}).status == 200
    assert waiting(desk) == ["v-2"]
    assert waiting(desk, "?snoozed=1") == ["v-1"]

    assert desk.call("POST", "/reviews/v-2/label", {"fraud": True, "by": "ann"}).status == 200
    assert waiting(desk) == []
    (label,) = on_log(broker, service.label.topic)
    assert (label["payment_id"], label["fraud"], label["by"], label["amount"]) == ("v-2", 1, "ann", "600.00")

    with serving(service, broker) as reborn:  # the log is all there is to remember
        until(lambda: waiting(reborn, "?snoozed=1") == ["v-1"])
        assert waiting(reborn) == []


def test_the_oldest_review_falls_out_of_a_full_queue_and_is_back_when_there_is_room(broker: Broker) -> None:
    service = made(broker, queue=2)
    assert service.alerts is not None
    with serving(service, broker) as desk:
        until(lambda: desk.call("GET", "/reviews").status == 200)
        write(broker, service.alerts.name, alert("r-1"), alert("r-2"), alert("r-3"))
        until(lambda: waiting(desk) == ["r-2", "r-3"])
        assert desk.call("GET", "/reviews").body["fallen"] == 1
        assert (desk.metric("headrace_reviews_fallen_total"), desk.metric("headrace_reviews_waiting")) == (1, 2)
        gone = desk.call("POST", "/reviews/r-1/label", {"fraud": True, "by": "ann"})
        assert (gone.status, "too old" in gone.body["error"]["why"]) == (404, True)
        assert desk.call("POST", "/reviews/r-3/label", {"fraud": False, "by": "ann"}).status == 200
    with serving(service, broker) as reborn:
        until(lambda: waiting(reborn) == ["r-1", "r-2"])
        assert reborn.call("GET", "/reviews").body["fallen"] == 0
    assert [one.id for one in due(broker, service)] == ["r-1", "r-2"]


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        ("/reviews/none/label", {"fraud": True, "by": "ann"}, 404, "not-found"),
        ("/reviews/w-1/label", {"by": "ann"}, 422, "wrong-type"),
        ("/reviews/w-1/label", {"fraud": "yes", "by": "ann"}, 422, "wrong-type"),
        ("/reviews/w-1/label", {"fraud": True}, 422, "wrong-type"),
        ("/reviews/w-1/label", {"fraud": True, "by": "4111111111111111"}, 422, "card-number"),
        ("/reviews/w-1/snooze", {"until": "tomorrow", "by": "ann"}, 422, "wrong-type"),
    ],
)
def test_a_wrong_word_about_a_review_is_refused(
    path: str, body: Any, status: int, code: str, desk: Caller, service: Service, broker: Broker
) -> None:
    assert service.alerts is not None
    if "w-1" not in waiting(desk):
        write(broker, service.alerts.name, alert("w-1"))
        until(lambda: "w-1" in waiting(desk))
    answer = desk.call("POST", path, body)
    assert (answer.status, answer.code) == (status, code)
    assert "w-1" in waiting(desk)


def test_the_page_gets_its_history_and_then_a_snapshot_a_second(desk: Caller, service: Service, broker: Broker) -> None:
    assert service.alerts is not None
    assert service.label is not None
    assert service.batch is not None
    fraud = {"card_id": "c1", "amount": "100.00", "fraud": 1, "by": "bank", "at": rfc3339(datetime.now(UTC))}
    write(broker, service.alerts.name, alert("m-1", "decline"))
    write(broker, service.batch.name, {"payment_id": "m-2"})
    write(broker, service.label.topic, *({"payment_id": f"m-{n}", **fraud} for n in (1, 2, 3)))
    write(broker, service.answer.name, {"payment_id": "m-1", "decision": "decline"})
    until(lambda: desk.metric('headrace_decisions_total{decision="decline"}') >= 1)

    def counted() -> bool:
        (first, _), (second, _), (third, snapshot) = events(desk, 3)
        assert (first, second, third) == ("history", "second", "second")
        point = snapshot["point"]
        shown = any(row["payment_id"] == "m-1" for row in snapshot["alerts"])
        return shown and (point["fraud"], point["saved"], point["saved_by_batch"]) == (900.0, 700.0, 100.0)

    until(counted)  # with the 600 of v-2, which was stopped for review and labelled fraud


def test_the_page_and_all_it_needs_come_from_here(desk: Caller) -> None:
    page = desk.call("GET", "/")
    assert page.status == 200
    for name in ("page.js", "page.css", "uPlot.iife.min.js", "uPlot.min.css"):
        assert f"/static/{name}" in page.body
        assert desk.call("GET", f"/static/{name}").status == 200
    assert "://" not in page.body  # nothing from elsewhere
