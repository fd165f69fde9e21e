"""Rules B1-B3 on Spark: what cannot be read or computed is set aside with its reason, and the stream goes on."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.base.ids import random_id
from headrace.log.broker import Broker
from headrace.spark.session import Spark
from tests.spark.flowing import Flowing

HUGE = 4611686018427387904  # 2 ** 62: twice that does not fit an int
GOOD = {"id": "g", "page": "p", "at": "2020-01-01T10:00:00.000000Z", "spent": 1, "score": 1.5, "price": "1.00"}


def event_on(topic: str) -> Any:
    @hr.event(topic=topic, key="page", time="at", id="id")
    class Visit:
        id: str
        page: str
        at: datetime
        spent: int
        score: float
        price: hr.Money
        note: str | None = None

    return Visit


def changed(**values: Any) -> bytes:
    return json.dumps(GOOD | values).encode()


def without(name: str) -> bytes:
    return json.dumps({key: value for key, value in GOOD.items() if key != name}).encode()


BAD = {
    "no JSON": (b"{", "undecodable"),
    "bytes": (b"\xff\xfe\x00", "undecodable"),
    "no object": (b"[1, 2]", "undecodable"),
    "no value": (None, "undecodable"),
    "null key": (changed(page=None), "missing-key"),
    "no id": (without("id"), "missing-id"),
    "no time": (without("at"), "missing-time"),
    "no field": (without("spent"), "schema"),
    "wrong type": (changed(spent="many"), "schema"),
    "too much money": (changed(price="12345678901234567.00"), "schema"),
    "nan": (changed(score=float("nan")), "nan"),
    "future": (changed(at="2999-01-01T00:00:00.000000Z"), "future"),
    "1 MB of nothing": (b"x" * 1_000_000, "undecodable"),
}
"""A value, and the reason it dies of."""


class Ran:
    """One run over a good record, all bad ones, one that no step can compute, one that grows too large, a good one."""

    def __init__(self, flowing: Flowing) -> None:
        self.flowing = flowing
        flowing.produce(
            [
                (b"p", changed(id="first"), None, 0, 0),
                *((b"a key", value, [("trace", b"t1")], 0, 0) for value, _ in BAD.values()),
                (b"p", changed(id="sick", spent=2), None, 0, 0),
                (b"p", changed(id="wide", note="n" * 600_000), None, 0, 0),
                (b"p", changed(id="last", at="2020-01-01T10:01:00.000000Z"), None, 0, 0),
            ]
        )
        counts = flowing.history().counts
        self.counts = {one.step: one for one in counts}
        self.letters = {letter.offset: letter for letter in flowing.letters()}

    def ids(self, name: str) -> list[str]:
        return [row["id"] for row in self.flowing.rows(f"{self.flowing.topic}-{name}")]


@pytest.fixture(scope="module")
def ran(spark: Spark, broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    topic = f"t-{random_id()[:12]}"
    app = hr.App("site")
    visits = app.stream(event_on(topic), disorder="0 s")
    out = lambda name: app.topic(f"{topic}-{name}", partitions=1)  # noqa: E731
    double = f"spent * {HUGE}"
    visits.where(f"{double} >= 0").named("in-filter").to(out("filter"))
    visits.select(f"id, page, {double} as much").named("in-select").to(out("select"))
    visits.where("id <> ''").named("kept").to(out("exit"), key=f"{double} as much")
    hourly = lambda stream: stream.window(hr.tumbling("1 h"), lateness="0 s")  # noqa: E731
    hourly(visits).agg(much=hr.max(double), n=hr.count()).named("in-argument").to(out("argument"))
    hourly(visits.key_by(f"{double} as much")).agg(n=hr.count()).named("in-key").to(out("key"))
    visits.select("id, page, concat(note, note) as twice").named("wide").to(out("wide"), key="page")
    return Ran(Flowing(spark, broker, tmp_path_factory.mktemp("bad"), app))


@pytest.mark.parametrize("name", BAD)
def test_b1_a_record_that_cannot_be_read_is_a_dead_letter_with_its_reason_and_its_bytes(ran: Ran, name: str) -> None:
    value, reason = BAD[name]
    offset = 1 + list(BAD).index(name)
    letter = ran.letters[offset]

    assert (letter.id, letter.reason) == (f"site/{ran.flowing.topic}/0/{offset}", reason)
    assert letter.error
    assert (letter.key, letter.value, letter.headers) == (b"a key", value, (("trace", b"t1"),))
    assert letter.time.year > 2020  # when it died: its own time is not known


def test_b1_the_stream_goes_on(ran: Ran) -> None:
    assert ran.ids("filter") == ["first", "wide", "last"]
    assert len(ran.letters) == len(BAD) + 2


def test_b3_a_result_that_does_not_fit_is_a_dead_letter_wherever_it_is_computed(ran: Ran) -> None:
    letter = ran.letters[len(BAD) + 1]

    assert letter.reason == "does-not-fit"
    assert f"spent * {HUGE} does not fit int" in letter.error
    assert json.loads(letter.value or b"")["id"] == "sick"
    for name in ("filter", "select", "exit"):
        assert "sick" not in ran.ids(name)
    for name in ("argument", "key"):
        (row,) = ran.flowing.rows(f"{ran.flowing.topic}-{name}")
        assert (row["much"], row["n"]) == (HUGE, 3)


def test_a_record_too_large_for_its_topic_is_a_dead_letter_and_stops_nothing(ran: Ran) -> None:
    letter = ran.letters[len(BAD) + 2]

    assert letter.reason == "record-too-large"
    assert letter.key == b"p"
    assert json.loads(letter.value or b"")["twice"] == "n" * 1_200_000
    assert ran.ids("wide") == ["first", "sick", "last"]


def test_d3_every_record_is_accounted_for_in_the_source_and_in_every_step(ran: Ran) -> None:
    assert all(counts.missing == 0 for counts in ran.counts.values())
    told = {step: (c.entered, c.used, c.dead) for step, c in ran.counts.items()}
    good, dead = 4, len(BAD)
    assert told == {
        ran.flowing.topic: (good + dead, good, dead),
        "in-filter": (good, good - 1, 1),
        "in-select": (good, good - 1, 1),
        "kept": (good, good, 0),
        "in-argument": (good, good - 1, 1),
        "in-key": (good, good - 1, 1),
        "wide": (good, good, 0),
    }


def test_b3_results_that_die_have_names_of_their_own(spark: Spark, broker: Broker, topic: str, tmp_path: Path) -> None:
    app = hr.App("site")
    visits = app.stream(event_on(topic), disorder="0 s")
    minutes = visits.window(hr.tumbling("1 min"), lateness="0 s").agg(total=hr.sum("spent")).named("minutes")
    minutes.select(f"page, total * {HUGE} as much").named("doubled").to(app.topic(f"{topic}-out", partitions=1))
    flowing = Flowing(spark, broker, tmp_path, app)
    at = lambda minute: f"2020-01-01T10:{minute:02}:00.000000Z"  # noqa: E731
    flowing.produce((b"p", changed(at=at(minute), spent=minute), None, 0, 0) for minute in range(4))

    counts = {one.step: one for one in flowing.history().counts}

    assert [row["much"] for row in flowing.rows(f"{topic}-out")] == [0, HUGE]
    letters = flowing.letters()
    assert sorted(json.loads(letter.value or b"")["total"] for letter in letters) == [2, 3]
    assert {letter.partition for letter in letters} == {-1}  # a result stands nowhere in the log
    assert (counts["doubled"].entered, counts["doubled"].used, counts["doubled"].dead) == (4, 2, 2)
