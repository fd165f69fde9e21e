"""The review queue, the live events and the page, over HTTP."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from headrace.base.clock import rfc3339
from headrace.base.errors import DeliveryFailed
from headrace.log.broker import Broker
from headrace.model.service import Service
from headrace.ops.reviews import done, due
from headrace.ops.reviews import label as label_from_the_shell
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


def label(desk: Caller, id: str, *, fraud: bool, by: str) -> int:
    return desk.call("POST", f"/reviews/{id}/label", {"fraud": fraud, "by": by}).status


def labelled(desk: Caller) -> list[tuple[Any, ...]]:
    answer = until(lambda: (said := desk.call("GET", "/reviews?labelled=1")).status == 200 and said)
    return [(row["payment_id"], row["fraud"], row["by"]) for row in answer.body["reviews"]]


def test_what_was_labelled_is_corrected_by_a_later_word(broker: Broker) -> None:
    service = made(broker)
    assert service.alerts is not None
    assert service.label is not None
    with serving(service, broker) as desk:
        write(broker, service.alerts.name, alert("c-1"), alert("c-2"))
        until(lambda: waiting(desk) == ["c-1", "c-2"])
        assert [label(desk, id, fraud=True, by="ann") for id in ("c-1", "c-2")] == [200, 200]
        assert labelled(desk) == [("c-2", True, "ann"), ("c-1", True, "ann")]

        assert label(desk, "c-1", fraud=False, by="bob") == 200
        assert labelled(desk) == [("c-1", False, "bob"), ("c-2", True, "ann")]
        assert waiting(desk) == []
        later = {"until": rfc3339(datetime.now(UTC) + timedelta(hours=1)), "by": "ann"}
        assert desk.call("POST", "/reviews/c-1/snooze", later).status == 404
        (_, told) = events(desk, 2)[-1]
        assert [(row["payment_id"], row["by"]) for row in told["reviews"]["labelled"]] == [
            ("c-1", "bob"), ("c-2", "ann"),
        ]  # fmt: skip

        # when a word comes that is dated before what is known, or after now
        words = [row for row in on_log(broker, service.label.topic) if row["payment_id"] == "c-1"]
        ahead = rfc3339(datetime.now(UTC) + timedelta(hours=1))
        write(broker, service.label.topic, words[-1] | {"by": "cid", "fraud": 1, "at": words[0]["at"]})
        write(broker, service.label.topic, words[-1] | {"payment_id": "c-2", "by": "dan", "at": ahead})
        until(lambda: ("c-2", True, "dan") not in labelled(desk) and labelled(desk)[0][2] == "dan")
        assert ("c-1", False, "bob") in labelled(desk)
        # then the next word is later than that
        assert label(desk, "c-2", fraud=True, by="eve") == 200
        assert labelled(desk)[0] == ("c-2", True, "eve")

    told = {row["by"]: row["at"] for row in on_log(broker, service.label.topic)}
    assert told["eve"] > told["dan"] == ahead
    with serving(service, broker) as reborn:
        assert labelled(reborn) == [("c-2", True, "eve"), ("c-1", False, "bob")]
        assert waiting(reborn) == []
        assert label(reborn, "c-1", fraud=True, by="ann") == 200
        assert labelled(reborn)[0] == ("c-1", True, "ann")
    assert [(one.id, one.said and one.said.by) for one in done(broker, service)] == [("c-2", "eve"), ("c-1", "ann")]


def test_a_label_that_the_broker_refuses_is_told(broker: Broker) -> None:
    service = made(broker, small="labels")
    assert service.alerts is not None
    with serving(service, broker) as desk:
        write(broker, service.alerts.name, alert("l-1") | {"card_id": "c" * 500})
        until(lambda: waiting(desk) == ["l-1"])
        refused = desk.call("POST", "/reviews/l-1/label", {"fraud": True, "by": "ann"})
        assert (refused.status, refused.code) == (500, "delivery-failed")
        assert waiting(desk) == ["l-1"]
    with pytest.raises(DeliveryFailed):
        label_from_the_shell(broker, service, "l-1", fraud=True, by="ann")


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


def test_labels_of_other_systems_count_in_the_money_by_their_times(broker: Broker) -> None:
    service = made(broker)
    assert service.alerts is not None
    assert service.label is not None
    now = datetime.now(UTC)
    said = {"card_id": "c1", "amount": "100.00", "fraud": 1, "by": "bank", "at": rfc3339(now)}
    with serving(service, broker) as desk:
        write(broker, service.alerts.name, *(alert(f"o-{n}", amount="100.00") for n in (1, 2, 3)))
        until(lambda: sorted(waiting(desk)) == ["o-1", "o-2", "o-3"])  # of several partitions
        # when labels come that lack a field, cannot be any, are no money, or are older than what is known
        short = {name: value for name, value in said.items() if name != "by"}
        older = said | {"at": rfc3339(now - timedelta(days=1))}
        write(
            broker,
            service.label.topic,
            short | {"payment_id": "o-1"},
            said | {"payment_id": "o-2", "amount": "NaN"},
            said | {"payment_id": "o-3"},
            older | {"payment_id": "o-3", "fraud": 0},
            said | {"payment_id": "n-1", "fraud": 0},  # of a payment that nobody reviewed
            older | {"payment_id": "n-1"},
            {name: value for name, value in said.items() if name != "at"} | {"payment_id": "n-2", "amount": "7.00"},
            said | {"payment_id": "n-3", "fraud": "no"},
        )
        # then none of them waits, and the money has what is fraud by its latest label
        until(lambda: desk.metric("headrace_unreadable_total") == 4)
        assert waiting(desk) == []
        assert [row[:2] for row in labelled(desk)] == [("o-3", True)]

        def counted() -> bool:
            point = events(desk, 2)[-1][1]["point"]
            return bool(point) and (point["fraud"], point["saved"]) == (207.0, 200.0)

        until(counted)
