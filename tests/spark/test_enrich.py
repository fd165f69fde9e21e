"""Streams enriched from tables, from Kafka to Kafka, compared with the reference on the schedule that was recorded."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.log.broker import Broker
from headrace.log.produce import Producer
from headrace.log.read import read
from headrace.spark.running import Running
from headrace.spark.session import Spark
from tests.spark.bench import Bench
from tests.spark.flowing import until

DAY = datetime(2026, 11, 3, 10, tzinfo=UTC)
LIVED = ("now", "then", "at-once")


class Enriching(Bench):
    """Clicks enriched with users, now and as of their time, with static tables, and counted by city after it."""

    def __init__(self, spark: Spark, broker: Broker, home: Path, topic: str, *, ttl: str | None = None) -> None:
        @hr.event(topic=f"{topic}-clicks", key="user_id", time="at", id="click_id")
        class Click:
            click_id: str
            user_id: str
            friend: str | None
            at: datetime

        @hr.event(topic=f"{topic}-users", key="user_id", time="since")
        class User:
            user_id: str
            city: str
            credit: hr.Money
            since: datetime

        @hr.event(key="city")
        class City:
            city: str
            capital: bool
            tags: list[str]
            founded: datetime
            raw: bytes
            share: float | None
            tax: hr.Money

        @hr.event(key="user_id, size")
        class Size:
            user_id: str
            size: int
            word: str

        self.click, self.user = Click, User
        app = hr.App("bench")
        clicks = app.stream(Click, disorder="20 s", idle="300 ms", name="clicks")
        users = app.table(User, history="5 min", ttl=ttl, idle="300 ms", disorder="20 s", name="users")
        out = lambda name: app.topic(f"{topic}-{name}", partitions=2)  # noqa: E731
        now = clicks.enrich(users, on="user_id")
        now.to(out("now"))
        sizes = app.static(Size, [Size("u1", 2, "short"), Size("u2", 3, "long")])
        clicks.enrich(sizes, on="clicks.user_id = size.user_id and length(clicks.click_id) = size.size",
                      take="clicks.click_id, size.word").where("word is not null").to(out("sizes"))  # fmt: skip
        friends = clicks.enrich(users, on="clicks.friend = users.user_id", prefix="friend_")
        friends.to(out("friends"))
        then = clicks.enrich(users, on="user_id", as_of="at")
        then.to(out("then"))
        founded = datetime(1, 1, 1, microsecond=1, tzinfo=UTC)
        known = [City("c0", True, ["a", "é"], founded, b"\0", None, hr.money("0.05")),
                 City("c1", False, [], DAY, b"", 0.1, hr.money("-7"))]  # fmt: skip
        then.enrich(app.static(City, known), on="city").to(out("static"))
        then.late.to(out("late"))
        clicks.enrich(users, on="user_id", as_of="at", wait="0 s").to(out("at-once"))
        cities = then.where("city is not null").key_by("city").window(hr.tumbling("1 min"), lateness="10 s")
        cities.agg(clicks=hr.count(), credit=hr.sum("credit")).to(out("cities"))
        super().__init__(spark, broker, home, app)

    def change(self, seed: int, rows: int) -> None:
        """Versions out of order, and tombstones."""
        chance = random.Random(seed)
        with Producer(self.broker, self.user, acks=1) as producer:
            for number in range(rows):
                since = DAY + timedelta(seconds=chance.randrange(600), microseconds=chance.choice((0, 1)))
                user = f"u{chance.randrange(4)}"
                if chance.random() < 0.2:
                    producer.send_tombstone(user, at=since.replace(microsecond=0))
                else:
                    producer.send(self.user(user, f"c{chance.randrange(3)}", hr.money(number), since))

    def clicked(self, seed: int, rows: int) -> None:
        chance = random.Random(seed)
        found: list[Any] = []
        for number in range(rows):
            at = DAY + timedelta(seconds=4 * number - chance.choice((0, 0, 10, 60, 400)))
            friend = chance.choice((None, f"u{chance.randrange(4)}"))
            found.append(self.click(f"k{number}", f"u{chance.randrange(5)}", friend, at))
        self.fill(found)


@pytest.fixture
def run(spark: Spark, broker: Broker, topic: str, tmp_path: Path) -> Enriching:
    return Enriching(spark, broker, tmp_path, topic)


def test_j4_history_equals_the_reference_on_the_recorded_schedule(run: Enriching) -> None:
    run.change(1, 40)
    run.clicked(2, 120)

    run.history(max_records=25)

    records = run.check().records
    assert len(records) > 300  # the comparison is not of nothing
    asked = [record.values for record in records if record.topic.endswith("-static")]
    assert all(any(city in values for values in asked) for city in ("c0", "c1", "c2"))  # two that are there, one not


def test_j7_rows_that_are_not_renewed_are_not_found_as_in_the_reference(
    spark: Spark, broker: Broker, topic: str, tmp_path: Path
) -> None:
    run = Enriching(spark, broker, tmp_path, topic, ttl="90 s")
    run.change(3, 40)
    run.clicked(4, 120)

    run.history(max_records=25)

    found = {name: [r.values[-3] for r in run.check().records if r.topic == f"{topic}-{name}"] for name in LIVED}
    assert all(None in cities and len(set(cities)) > 1 for cities in found.values())


def test_j4_a_live_run_with_stops_and_changes_equals_the_reference(run: Enriching) -> None:
    for number in (1, 2):
        run.change(number, 15)
        run.clicked(10 + number, 40)
        run.live(30, rows=55)
    run.check(stopped=True)


def test_f2_a_table_of_changes_is_what_they_leave(spark: Spark, broker: Broker, topic: str, tmp_path: Path) -> None:
    @hr.event(topic=f"{topic}-clicks", key="user_id", time="at")
    class Click:
        user_id: str
        at: datetime

    @hr.event(topic=f"{topic}-users", key="user_id")
    class User:
        user_id: str
        city: str

    app = hr.App("bench")
    users = app.table(User, changes=True)
    app.stream(Click, disorder="0 s").enrich(users, on="user_id").to(app.topic(f"{topic}-out"))
    bench = Bench(spark, broker, tmp_path, app)
    rome, oslo, bonn = ({"user_id": "u1", "city": city} for city in ("Rome", "Oslo", "Bonn"))
    client = broker.producer({})
    for key, change in (
        ("u1", {"op": "insert", "before": None, "after": rome, "version": "2026-11-03T10:00:00.000000Z"}),
        ("u1", {"op": "update", "before": rome, "after": oslo, "version": "2026-11-03T10:00:02.000000Z"}),
        ("u1", {"op": "update", "before": rome, "after": bonn, "version": "2026-11-03T10:00:01.000000Z"}),  # late
        ('{"user_id": "u2"}', {"op": "c", "before": None, "after": oslo | {"user_id": "u2"}, "ts_ms": 1}),
        ('{"user_id": "u2"}', {"op": "d", "before": {"user_id": "u2"}, "after": None, "ts_ms": 2}),
        ('{"user_id": "u3"}', {"op": "r", "before": None, "after": bonn | {"user_id": "u3"}, "ts_ms": 1}),
    ):
        client.produce(f"{topic}-users", json.dumps(change), key, 0)
    assert client.flush(20) == 0
    bench.fill(Click(f"u{number}", DAY) for number in (1, 2, 3))

    bench.history()

    assert sorted(json.loads(m.value())["city"] or "" for m in read(broker, f"{topic}-out")) == ["", "Bonn", "Oslo"]


def test_r5_in_real_time_rows_are_enriched_as_they_come_also_over_a_restart(
    spark: Spark, broker: Broker, topic: str, tmp_path: Path
) -> None:
    @hr.event(topic=f"{topic}-clicks", key="user_id", time="at", id="click_id")
    class Click:
        click_id: str
        user_id: str
        at: datetime

    @hr.event(topic=f"{topic}-users", key="user_id", time="since")
    class User:
        user_id: str
        city: str
        since: datetime

    @hr.event(key="user_id")
    class Nickname:
        user_id: str
        name: str

    app = hr.App("bench")
    clicks = app.stream(Click, disorder="1 min")
    users = app.table(User, history="1 h")
    clicks.enrich(users, on="user_id").to(app.topic(f"{topic}-now"))
    clicks.enrich(users, on="user_id", as_of="at", wait="0 s").to(app.topic(f"{topic}-then"))
    nicknames = app.static(Nickname, [Nickname("u1", "ann")])
    clicks.enrich(nicknames, on="user_id", take="nickname.name as city").to(app.topic(f"{topic}-static"))
    bench = Bench(spark, broker, tmp_path, app)
    sent = itertools.count()
    cities = lambda name: {row["city"] for row in map(json.loads, values(broker, f"{topic}-{name}"))}  # noqa: E731

    def click_until(name: str, city: str | None, at: datetime) -> None:
        """Topics have no order between them: a click may overtake a version."""

        def seen() -> bool:
            bench.fill([Click(f"k{next(sent)}", "u1", at), Click(f"k{next(sent)}", "nobody", at)])
            return city in cities(name)

        until(seen, within=60, every=0.05)

    bench.fill([User("u1", "Rome", DAY)])
    with in_real_time(bench):
        click_until("now", "Rome", DAY + timedelta(seconds=9))
        bench.fill([User("u1", "Oslo", DAY + timedelta(seconds=5))])
        click_until("now", "Oslo", DAY + timedelta(seconds=9))
        click_until("then", "Oslo", DAY + timedelta(seconds=9))
        click_until("static", "ann", DAY)
    with in_real_time(bench):
        bench.fill([User("u1", "Bonn", DAY + timedelta(seconds=7))])
        click_until("then", "Bonn", DAY + timedelta(seconds=9))

    assert cities("then") == {None, "Rome", "Oslo", "Bonn"}
    assert cities("static") == {None, "ann"}
    assert {row["city"] for row in map(json.loads, values(broker, f"{topic}-now")) if row["user_id"] == "nobody"} == {
        None
    }


@contextmanager
def in_real_time(bench: Bench) -> Iterator[None]:
    job = replace(bench.job("realtime"), pace=timedelta(seconds=5))
    running = Running(bench.spark, job, lambda _: None)
    try:
        yield
    finally:
        running.stop()
    assert running.error is None


def values(broker: Broker, topic: str) -> list[bytes]:
    return [message.value() for message in read(broker, topic)]
