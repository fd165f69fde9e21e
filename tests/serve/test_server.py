"""The decision service over real HTTP and the real broker."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headrace.base.clock import rfc3339
from headrace.base.ids import random_id
from headrace.log.broker import Broker
from headrace.model.service import Service
from headrace.serve.server import _listen
from tests.log.paying import until
from tests.serve.asking import KEY, Caller, deciding, decision, made, on_log, payment, serving, write, write_bytes


@pytest.fixture(scope="module")
def service(broker: Broker) -> Service:
    return made(broker)


@pytest.fixture(scope="module")
def desk(service: Service, broker: Broker) -> Iterator[Caller]:
    with deciding(service, broker, decision), serving(service, broker) as caller:
        yield caller


def test_a_payment_is_answered_with_the_decision_of_the_flow(desk: Caller, service: Service, broker: Broker) -> None:
    small, large = desk.decide(payment("a-1")), desk.decide(payment("a-2", amount="5000.00"))
    assert (small.status, small.body["decision"]) == (200, "allow")
    assert large.body == {
        "payment_id": "a-2",
        "decision": "decline",
        "reasons": ["amount 5000"],
        "score": 0.5,
        "degraded": False,
    }
    assert {"a-1", "a-2"} <= {row["payment_id"] for row in on_log(broker, service.ask.topic)}


def test_what_cannot_be_read_is_passed_over(desk: Caller, service: Service, broker: Broker) -> None:
    assert service.alerts is not None
    broken = [b'{"payment_id": "u-1", "decision": "\xff"}', b"{", b"7", b"[" * 100_000]
    before = desk.metric("headrace_unreadable_total")
    for topic in (service.answer.name, service.alerts.name):
        write_bytes(broker, topic, *broken)
    until(lambda: desk.metric("headrace_unreadable_total") == before + len(broken))
    assert desk.decide(payment("u-2")).body["decision"] == "allow"
    until(lambda: desk.call("GET", "/reviews").status == 200)  # at first it reads what was labelled before


def test_an_answer_does_not_wait_for_the_acknowledgement_of_its_head() -> None:
    with (
        _listen("127.0.0.1", 0) as listening,
        socket.create_connection(listening.getsockname()),
        listening.accept()[0] as accepted,
    ):
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_timings_say_where_the_time_went(desk: Caller) -> None:
    timings = desk.decide(payment("t-1"), "/decide?timings=1").body["timings_ms"]
    assert set(timings) == {"validate", "written", "answered", "total"}
    assert 0 < timings["answered"] <= timings["total"]


NOW = datetime.now(UTC)
BAD: list[tuple[str, Any, int, str]] = [
    ("an unknown field", payment("b", colour="red"), 422, "unknown-field"),
    ("a field too few", {k: v for k, v in payment("b").items() if k != "country"}, 422, "missing-field"),
    ("a wrong type", payment("b", lat="north"), 422, "wrong-type"),
    ("null", payment("b", card_id=None), 422, "wrong-type"),
    ("a third digit", payment("b", amount="1.234"), 422, "wrong-type"),
    ("too much money", payment("b", amount="1" + "0" * 30), 422, "money-overflow"),
    ("more money than can be computed with", payment("b", amount="1e9999999"), 422, "money-overflow"),
    ("a negative amount", payment("b", amount="-1.00"), 422, "check-failed"),
    ("an absurd amount", payment("b", amount="100000.01"), 422, "check-failed"),
    ("a clock an hour ahead", payment("b", at=rfc3339(NOW + timedelta(hours=1))), 422, "clock-ahead"),
    ("last week", payment("b", at=rfc3339(NOW - timedelta(days=7))), 422, "too-old"),
    ("a time without zone", payment("b", at="2026-11-03T15:00:00"), 422, "wrong-type"),
    ("a time before all time", payment("b", at="0001-01-01T00:00:00+23:59"), 422, "wrong-type"),
    ("a time after all time", payment("b", at="9999-12-31T23:59:59-23:59"), 422, "wrong-type"),
    ("a list", [payment("b")], 422, "wrong-type"),
    ("no JSON", b"{", 400, "undecodable"),
    ("nothing", b"", 400, "undecodable"),
    ("no text", b"\xff\xfe", 400, "undecodable"),
    ("depth", payment("b", country={"a": [[[{}]]]}), 400, "too-deep"),
    ("great depth", b"[" * 15_000, 400, "too-deep"),
    ("a large body", b" " * 17_000, 413, "body-too-large"),
    ("a card number", payment("b", country="4111 1111 1111 1111"), 422, "card-number"),
    ("a card number as a number", payment("b", lat=4111111111111111), 422, "card-number"),
    ("an endless number", payment("b", lat=10**400), 422, "wrong-type"),
    ("a card number as a name", payment("b") | {"4111111111111111": 1}, 422, "card-number"),
]


@pytest.mark.parametrize(("body", "status", "code"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_bad_input_is_refused_with_a_code_and_never_written(
    body: Any, status: int, code: str, desk: Caller, service: Service, broker: Broker
) -> None:
    answer = desk.decide(body)
    assert (answer.status, answer.code) == (status, code)
    assert set(answer.body["error"]) == {"code", "what", "why", "fix"}
    assert "Traceback" not in str(answer.body)
    assert "4111" not in str(answer.body)


def test_what_was_refused_is_not_on_the_log(desk: Caller, service: Service, broker: Broker) -> None:
    assert "b" not in {row["payment_id"] for row in on_log(broker, service.ask.topic)}


def test_a_chunked_body_without_length_has_the_same_limit(desk: Caller) -> None:
    connection = http.client.HTTPConnection(desk.at, timeout=30)
    headers = {"X-Api-Key": KEY, "Content-Type": "application/json"}
    connection.request("POST", "/decide", iter([b" " * 10_000] * 3), headers, encode_chunked=True)
    assert connection.getresponse().status == 413
    connection.close()


@pytest.mark.parametrize(
    ("call", "status", "code"),
    [
        (("POST", "/decide", payment("k"), {"X_Api_Key": ""}), 401, "key-refused"),
        (("POST", "/decide", payment("k"), {"X_Api_Key": KEY + "x"}), 401, "key-refused"),
        (("GET", "/reviews", None, {"X_Api_Key": ""}), 401, "key-refused"),
        (("GET", "/live", None, {"X_Api_Key": ""}), 401, "key-refused"),
        (("POST", "/decide", payment("k"), {"Content_Type": "text/plain"}), 415, "not-json"),
        (("GET", "/decide", None, {}), 405, "method-refused"),
        (("GET", "/nothing", None, {}), 404, "not-found"),
        (("GET", "/static/../web.py", None, {}), 404, "not-found"),
    ],
)
def test_wrong_doors(call: Any, status: int, code: str, desk: Caller) -> None:
    method, path, body, headers = call
    counted = f'headrace_requests_total{{code="{status}"}}'
    before = desk.metric(counted)
    answer = desk.call(method, path, body, **headers)
    assert (answer.status, answer.code) == (status, code)
    assert desk.metric(counted) == before + 1


def test_the_same_payment_again_gets_the_same_answer_and_is_written_once(
    desk: Caller, service: Service, broker: Broker
) -> None:
    asked = payment("r-1", amount="700.00")
    first = desk.decide(asked)
    again = desk.decide(asked)
    assert first.body == again.body
    assert [row["payment_id"] for row in on_log(broker, service.ask.topic)].count("r-1") == 1


def test_the_same_id_with_other_content_is_refused(desk: Caller) -> None:
    asked = payment("o-1")
    desk.decide(asked)
    other = desk.decide(asked | {"amount": "13.00"})
    assert (other.status, other.code) == (409, "other-content")
    assert desk.decide(asked).status == 200


def test_an_id_that_the_flow_alone_still_knows_is_refused_too(broker: Broker) -> None:
    """It came longer ago than the service remembers: the flow sets it aside, and does not answer."""
    service = made(broker, deadline="2 s")
    assert service.repeats is not None
    twice = service.repeats.name
    write(broker, twice, payment("l-0"))  # a new broker takes its time with the first

    def set_aside(row: dict[str, Any]) -> list[dict[str, Any]]:
        write(broker, twice, row)
        return []

    with deciding(service, broker, set_aside), serving(service, broker) as desk:
        for _ in range(2):
            refused = desk.decide(payment("l-1"))
            assert (refused.status, refused.code) == (409, "other-content")
        # one that is answered all the same was written twice by two services: that is no other content
        write(broker, twice, payment("l-2"))
        until(lambda: len(on_log(broker, twice)) >= 3)
        write(broker, service.answer.name, {"payment_id": "l-2", "decision": "allow"})
        assert until(lambda: (said := desk.decide(payment("l-2"))).status == 200 and said).body["decision"] == "allow"
    assert on_log(broker, service.degraded.name) == []


def test_health_and_metrics(desk: Caller) -> None:
    assert until(lambda: desk.call("GET", "/health").status == 200)
    before = desk.metric('headrace_requests_total{code="200"}')
    desk.decide(payment("m-1"))
    assert desk.metric('headrace_requests_total{code="200"}') == before + 1
    assert desk.metric("headrace_in_flight") == 0
    assert desk.metric('headrace_decide_seconds_bucket{le="+Inf"}') == desk.metric("headrace_decide_seconds_count")


def test_a_restart_remembers_what_was_told(service: Service, broker: Broker, desk: Caller) -> None:
    asked = payment("s-1", amount="5000.00")
    told = desk.decide(asked)
    with serving(service, broker) as reborn:
        assert reborn.decide(asked | {"amount": "1.00"}).code == "other-content"  # it knows the first from the log
        assert reborn.decide(asked).body == told.body


def test_twins_are_compared_and_the_first_answer_wins(broker: Broker) -> None:
    service = made(broker)

    def twins(row: dict[str, Any]) -> list[dict[str, Any]]:
        say, seen = row["country"], "p/0@1"
        second = {"XA": ("allow", seen), "XB": ("decline", "p/0@2"), "XC": ("decline", seen)}[say]
        return [{"decision": "allow", "seen_card": seen}, {"decision": second[0], "seen_card": second[1]}]

    with deciding(service, broker, twins), serving(service, broker) as desk:
        for country in ("XA", "XB", "XC"):
            assert desk.decide(payment(country, country=country)).body["decision"] == "allow"
        for said in ("agreed", "differed", "disagreed"):
            until(lambda said=said: desk.metric(f'headrace_twin_answers_total{{said="{said}"}}') == 1)


def by_rules(event: Any) -> dict[str, Any]:
    if event.country == "XX":
        raise ValueError("no such country")
    return {"decision": "decline" if event.amount > 1000 else "allow", "reasons": ["by rules alone"]}


def test_without_a_decider_answers_are_degraded_and_nothing_is_lost(broker: Broker) -> None:
    service = made(broker, deadline="600 ms", spare="5 s")
    late = payment("d-late", amount="5000.00")
    with serving(service, broker, speak=by_rules) as desk:
        with deciding(service, broker, decision):
            until(lambda: not desk.decide(payment(f"d-{random_id()}")).body["degraded"])
        told = desk.decide(late).body
        assert (told["decision"], told["why"], told["by"]) == ("decline", "deadline", "fallback")
        assert told["degraded"]
        assert told["recorded"]
        assert desk.decide(payment("d-fails", country="XX")).body["by"] == "default"

        write(
            broker, service.answer.name, {"payment_id": "d-late", "decision": "allow"}
        )  # the flow is back, and answers what it had missed
        until(lambda: desk.metric('headrace_late_answers_total{said="other"}') == 1)
        assert desk.decide(late).body == told  # what was told stays told
    assert {"d-late", "d-fails"} <= {row["payment_id"] for row in on_log(broker, service.ask.topic)}
    assert {row["payment_id"] for row in on_log(broker, service.degraded.name)} >= {"d-late", "d-fails"}

    # given one that was told, and then lost with the service, since the broker was away
    write(broker, service.degraded.name, {"payment_id": "d-gone", "decision": "review", "why": "not-recorded"})
    with serving(service, broker) as reborn:
        assert reborn.decide(late).body == told
        gone = payment("d-gone")
        assert reborn.decide(gone).body["decision"] == "review"
        until(lambda: reborn.decide(gone).body["recorded"])
    assert "d-gone" in {row["payment_id"] for row in on_log(broker, service.ask.topic)}


def test_a_slow_fallback_is_not_waited_for(broker: Broker) -> None:
    service, hold = made(broker, deadline="20 ms", spare="50 ms"), threading.Event()
    with serving(service, broker, speak=lambda _: hold.wait(20)) as desk:
        assert desk.decide(payment("f-1")).body["by"] == "default"
        hold.set()


def test_too_many_at_once_are_turned_away_early(broker: Broker) -> None:
    service, hold = made(broker, most=2, deadline="10 s"), threading.Event()

    def say(row: dict[str, Any]) -> list[dict[str, Any]]:
        hold.wait(20)
        return decision(row)

    with deciding(service, broker, say), serving(service, broker) as desk:
        answers: list[Any] = []
        callers = [
            threading.Thread(target=lambda n=n: answers.append(desk.decide(payment(f"w-{n}")).status)) for n in range(2)
        ]
        for caller in callers:
            caller.start()
        until(lambda: desk.metric("headrace_in_flight") == 2)
        turned = desk.decide(payment("w-9"))
        assert (turned.status, turned.code, turned.headers["retry-after"]) == (503, "overloaded", "1")
        hold.set()
        for caller in callers:
            caller.join(20)
        assert answers == [200, 200]
    assert "w-9" not in {row["payment_id"] for row in on_log(broker, service.ask.topic)}


def test_who_asks_twice_at_once_waits_for_one_answer(broker: Broker) -> None:
    service, hold, asked = made(broker), threading.Event(), payment("w-1")

    def say(row: dict[str, Any]) -> list[dict[str, Any]]:
        hold.wait(20)
        return decision(row)

    with deciding(service, broker, say), serving(service, broker) as desk:
        answers: list[Any] = []
        callers = [threading.Thread(target=lambda: answers.append(desk.decide(asked).body)) for _ in range(3)]
        for caller in callers:
            caller.start()
        until(lambda: desk.metric("headrace_in_flight") == 3)
        hold.set()
        for caller in callers:
            caller.join(20)
    assert [answer["decision"] for answer in answers] == ["allow"] * 3
    assert len(on_log(broker, service.ask.topic)) == 1
