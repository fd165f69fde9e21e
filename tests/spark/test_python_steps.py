"""Python functions on Spark: the same rows, ids and dead letters as on the reference engine (rule B2)."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.base.clock import micros
from headrace.base.errors import BadStep, FunctionFailed
from headrace.base.ids import random_id
from headrace.base.settings import Settings
from headrace.log.broker import Broker
from headrace.log.produce import Producer
from headrace.log.read import read
from headrace.log.topics import ensure
from headrace.model.topic import Topic
from headrace.reference.batch import Arrival, Batch
from headrace.reference.engine import Engine
from headrace.spark.session import Spark
from headrace.steps.row import END
from tests.spark import mapped
from tests.spark.driving import driver
from tests.spark.flowing import Flowing
from tests.spark.mapped import Everything, Told, Word
from tests.spark.recorded import expected, written
from tests.spark.test_restart import write_app

DAY = datetime(2020, 1, 1, 10, tzinfo=UTC)


def event_on(topic: str) -> Any:
    """`Everything`, in a topic."""

    @hr.event(topic=topic, key="page", time="at")
    class Visit:
        page: str
        at: datetime
        number: int
        ratio: float
        ok: bool
        price: hr.Money
        raw: bytes
        times: list[datetime]
        words: list[str]
        prices: list[hr.Money]
        note: str | None = None
        later: datetime | None = None
        money: hr.Money | None = None

    return Visit


def visits(event: Any) -> list[Any]:
    def visit(page: str, minute: int, words: list[str], **more: Any) -> Any:
        at = DAY + timedelta(minutes=minute, microseconds=123_456)
        return event(
            page, at, 2**62, 0.1, True, Decimal("-0.01"), b"\x00\xff", [at, DAY], words, [Decimal("1.50")], **more
        )  # fmt: skip

    return [
        visit("a", 0, ["x", "y", "x"], note="ß 日本", later=DAY, money=Decimal("9.99")),
        visit("bad", 1, ["x", "stop", "y"]),
        visit("b", 2, []),
        visit("a", 9, ["z"]),
    ]


def declared(app: hr.App, event: Any, topic: str) -> None:
    out = lambda name: app.topic(f"{topic}-{name}", partitions=1)  # noqa: E731
    read = app.stream(event, disorder="0 s")
    read.map(mapped.same, Everything).named("same").to(out("same"), key="page")
    read.map(mapped.later, Everything).named("later").to(out("later"), key="page")
    read.map(mapped.wrong, Everything).named("wrong").to(out("wrong"), key="page")
    read.map(mapped.Shaky(), Everything, retries=2).named("shaky").to(out("shaky"), key="page")
    read.where(mapped.wordy).named("wordy").to(out("wordy"), key="page")
    words = read.where("number > 0").flat_map(mapped.split, Word).named("split")
    words.to(out("words"), key="word")
    words.map(mapped.shouted, Word).named("shouted").to(out("shouted"), key="word")
    words.key_by("word").window(hr.tumbling("5 min"), lateness="0 s").agg(
        places=hr.collect("place"), times=hr.count()
    ).named("per-word").to(out("per-word"))
    pages = read.window(hr.tumbling("5 min"), lateness="0 s").agg(times=hr.count()).named("pages")
    pages.map(mapped.told, Told).named("told").to(out("told"), key="page")


class Ran:
    """One run over history, and the reference over the same rows."""

    def __init__(self, flowing: Flowing, rows: list[Any]) -> None:
        self.flowing = flowing
        flowing.send(*rows)
        self.snapshot = flowing.history()
        self.counts = {counts.step: counts for counts in self.snapshot.counts}
        self.engine = Engine(flowing.plan, flowing.flow)
        columns = flowing.event.columns
        arrivals = [
            Arrival(micros(row.at), 0, 0, n, tuple(getattr(row, c.name) for c in columns)) for n, row in enumerate(rows)
        ]
        now = time.time_ns() // 1_000_000
        self.engine.batch(Batch(arrivals, None, now))
        self.engine.batch(Batch([], END, now))
        self.written = written(flowing.broker, *{leaving.target.name for leaving in flowing.flow.exits})
        self.expected = expected(self.engine.records, flowing.flow)

    def of(self, name: str, records: list[Any]) -> list[Any]:
        return [record for record in records if record[0] == f"{self.flowing.topic}-{name}"]


@pytest.fixture(scope="module")
def ran(spark: Spark, broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    topic = f"t-{random_id()[:12]}"
    app, event = hr.App("site"), event_on(topic)
    declared(app, event, topic)
    return Ran(Flowing(spark, broker, tmp_path_factory.mktemp("mapped"), app), visits(event))


OUTPUTS = ("same", "wordy", "later", "wrong", "shaky", "words", "shouted", "per-word", "told")


@pytest.mark.parametrize("name", OUTPUTS)
def test_functions_give_the_rows_and_ids_of_the_reference(ran: Ran, name: str) -> None:
    """Values of all types, to the microsecond and the cent; keys, ids and times of the records too."""
    found = ran.of(name, ran.written)

    assert found
    assert found == ran.of(name, ran.expected)


def test_flat_map_makes_any_number_of_rows_each_with_its_own_id(ran: Ran) -> None:
    words = ran.of("words", ran.written)

    assert sorted(key for _, key, *_ in words) == ["x", "x", "y", "z"]
    assert len({id for _, _, id, *_ in words}) == 4


def test_b2_an_exception_in_user_code_is_a_dead_letter_with_the_traceback(ran: Ran) -> None:
    """Of one record there is one letter (rule B1): three functions fail on it, the last one's words are kept."""
    of_result, of_record = ran.flowing.letters()

    assert {of_result.reason, of_record.reason} == {"function"}
    assert of_record.id == f"site/{ran.flowing.topic}/0/1"
    assert of_record.error in {dead.error for dead in ran.engine.dead if dead.step in ("later", "wrong", "split")}
    assert of_result.error == next(dead.error for dead in ran.engine.dead if dead.step == "told")
    assert of_result.error.startswith("Traceback")
    assert of_result.error.endswith("in told\n    raise ValueError(f\"{row.kind} of a bad page\")\n"
                                    "ValueError: final of a bad page")  # fmt: skip


def test_d3_functions_count_their_rows_as_the_reference_does(ran: Ran) -> None:
    told = {step: (c.entered, c.used, c.dead) for step, c in ran.counts.items()}

    assert told == {step: (c.received, c.used, c.dead) for step, c in ran.engine.counts().items()}
    assert told["wrong"] == (4, 3, 1)
    assert told["shaky"] == (4, 4, 0)


def test_b2_on_error_stop_stops(spark: Spark, broker: Broker, topic: str, tmp_path: Path) -> None:
    app, event = hr.App("site"), event_on(topic)
    read = app.stream(event, disorder="0 s")
    read.map(mapped.fussy, Everything, on_error="stop").to(app.topic(f"{topic}-out"), key="page")
    flowing = Flowing(spark, broker, tmp_path, app)
    flowing.send(*visits(event))

    with pytest.raises(FunctionFailed) as stopped:
        flowing.history()

    assert stopped.value.what == f"fussy failed on {topic}/0/1: ValueError('not this page')"
    assert stopped.value.why.startswith("Traceback")
    assert "in fussy" in stopped.value.why


def test_a_function_that_cannot_travel_is_refused_with_its_place(
    spark: Spark, broker: Broker, topic: str, tmp_path: Path
) -> None:
    @hr.event(key="page")
    class Local:
        page: str

    app, event = hr.App("site"), event_on(topic)
    app.stream(event, disorder="0 s").map(lambda row: Local(row.page), Local).to(app.topic(f"{topic}-out"), key="page")
    flowing = Flowing(spark, broker, tmp_path, app)

    with pytest.raises(BadStep, match="cannot travel to Spark's workers") as refused:
        flowing.history()

    assert "test_python_steps.py" in str(refused.value.where)


IN_REAL_TIME = """
@hr.event(key="page")
class Scored:
    page: str
    visit: str
    score: float

def odd(row):
    return row.spent % 2 == 1

def score(row) -> Scored:
    if row.page == "bad":
        raise ValueError("not this page")
    return Scored(row.page, row.visit, row.spent / 10)

site = hr.App("{topic}")
once = site.stream(Visit, disorder="1 min").dedup("visit", within="1 h")
once.where("spent > 5").to(site.topic("{topic}-large", partitions=1))
once.where(odd).map(score, on_error="ON_ERROR").to(site.topic("{topic}-scores", partitions=1), key="page")
"""


def test_r5_python_functions_are_called_in_real_time(
    broker: Broker, settings: Settings, topic: str, tmp_path: Path
) -> None:
    visit = write_app(tmp_path, topic, IN_REAL_TIME.replace("ON_ERROR", "dead"))["Visit"]
    ensure(broker, Topic(name=topic, partitions=1))

    def told(name: str) -> list[Any]:
        return [message.value() for message in read(broker, name)]

    with driver(tmp_path, settings, broker, "run", "visiting:site", "--realtime", "--interval", "10 min") as running:
        running.until(lambda: any(": running" in line for line in running.err))
        pages = ("a", "bad", "a", "b")
        with Producer(broker, visit, acks=1) as producer:
            producer.send_many(visit(f"v{n}", page, datetime.now(UTC), n) for n, page in enumerate(pages * 2))
        made = (f"{topic}-scores", f"{topic}.dead", f"{topic}-large")
        # the interval is longer than the test: nothing waits for its end
        running.until(lambda: all(len(told(name)) == 2 for name in made), every=0.1)
        scores = [json.loads(value) for value in told(f"{topic}-scores")]
        assert running.interrupt() == 0
    assert sorted((row["visit"], row["score"]) for row in scores) == [("v3", 0.3), ("v7", 0.7)]
    assert {json.loads(value)["visit"] for value in told(f"{topic}-large")} == {"v6", "v7"}  # they pass it by

    # one that is to stop ends the driver, and says why
    write_app(tmp_path, topic, IN_REAL_TIME.replace("ON_ERROR", "stop"))
    with driver(tmp_path, settings, broker, "run", "visiting:site", "--realtime", "--fresh") as failing:
        assert failing.ended() != 0
    assert "ValueError: not this page" in "".join(failing.err)
