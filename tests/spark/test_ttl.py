"""Time to live on Spark: rows that are not renewed, and keys that fell silent, are gone, and so is their state."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import headrace as hr
from headrace.log.broker import Broker
from headrace.log.read import read
from headrace.spark.running import Running
from headrace.spark.session import Spark
from tests.spark.bench import Bench
from tests.spark.flowing import short_batches, until

MANY = 40


def at(minute: float) -> datetime:
    return datetime(2026, 11, 3, 10, tzinfo=UTC) + timedelta(minutes=minute)


def click_on(topic: str) -> Any:
    @hr.event(topic=f"{topic}-clicks", key="user_id", time="at", id="click_id")
    class Click:
        click_id: str
        user_id: str
        at: datetime

    return Click


def user_on(topic: str) -> Any:
    @hr.event(topic=f"{topic}-users", key="user_id", time="since")
    class User:
        user_id: str
        city: str
        since: datetime

    return User


@contextmanager
def live(bench: Bench) -> Iterator[Running]:
    running = Running(bench.spark, bench.job("live"), lambda _: None)
    try:
        yield running
    finally:
        running.stop()
    assert running.error is None
    assert all(counts.missing == 0 for counts in running.snapshot.counts)


def reached(running: Running, minute: float) -> Callable[[], bool]:
    """Whether the watermark has."""
    return lambda: running.snapshot.watermark is not None and running.snapshot.watermark >= at(minute)


def keys(running: Running, step: str) -> int:
    return sum(kept.keys for kept in running.snapshot.kept if kept.step == step)


def test_j7_a_stream_finds_no_row_whose_time_is_up(spark: Spark, broker: Broker, topic: str, tmp_path: Path) -> None:
    Click, User, app = click_on(topic), user_on(topic), hr.App("bench")  # noqa: N806
    clicks = app.stream(Click, disorder="0 s", idle=None)
    users = app.table(User, history="5 min", ttl="30 min", idle="300 ms")
    clicks.enrich(users, on="user_id").named("now").to(app.topic(f"{topic}-now", partitions=1))
    clicks.enrich(users, on="user_id", as_of="at").named("then").to(app.topic(f"{topic}-then", partitions=1))
    bench = Bench(spark, broker, tmp_path, app)
    bench.fill(User(f"u{n}", "Rome", at(0)) for n in range(MANY))

    def click(id: str, minute: float) -> None:
        """In each partition, so that time moves in all of them."""
        bench.fill(Click(id, f"u{n}", at(minute)) for n in range(MANY))
        until(reached(running, minute))

    with live(bench) as running:
        click("early", 20)
        assert (keys(running, "now"), keys(running, "then")) == (MANY, MANY)
        click("last", 45)
        until(lambda: keys(running, "now") == 0)
        bench.fill([User("u1", "Oslo", at(44))])
        until(lambda: keys(running, "now") == 1)
        click("after", 50)
        click("end", 51)

    bench.check(stopped=True)
    found = {
        (name, row["click_id"], row["city"])
        for name in ("now", "then")
        for row in map(json.loads, (message.value() for message in read(broker, f"{topic}-{name}")))
        if row["user_id"] in ("u1", "u2")
    }
    assert {one for one in found if one[0] == "now"} == {
        ("now", "early", "Rome"),
        ("now", "last", "Rome"),  # the watermark that it met was at 10:20
        ("now", "after", "Oslo"),
        ("now", "after", None),
        ("now", "end", "Oslo"),
        ("now", "end", None),
    }
    assert ("then", "early", "Rome") in found
    assert ("then", "last", None) in found
    assert not any(one == ("then", "last", "Rome") for one in found)
    assert keys(running, "then") <= MANY  # rows of the end may wait; of versions only that of u1 is left


def test_r5_in_real_time_a_row_is_gone_when_an_interval_ends(
    spark: Spark, broker: Broker, topic: str, tmp_path: Path
) -> None:
    Click, User, app = click_on(topic), user_on(topic), hr.App("bench")  # noqa: N806
    users = app.table(User, ttl="30 min")
    app.stream(Click, disorder="0 s", idle=None).enrich(users, on="user_id").to(app.topic(f"{topic}-now", partitions=1))
    bench = Bench(spark, broker, tmp_path, app)
    bench.fill([User("u1", "Rome", at(0))])

    def seen(minute: float, city: str | None) -> Callable[[], bool]:
        def look() -> bool:
            bench.fill(Click(f"c{n}", f"u{n}", at(minute)) for n in range(MANY))  # in each partition: time moves
            rows = (json.loads(message.value()) for message in read(broker, f"{topic}-now"))
            return any((row["user_id"], row["city"], row["click_id"]) == ("u1", city, "c1") for row in rows)

        return look

    with short_batches(spark):
        running = Running(spark, replace(bench.job("realtime"), pace=timedelta(seconds=2)), lambda _: None)
        try:
            until(seen(20, "Rome"), every=0.2)
            assert not seen(29, None)()
            until(seen(45, None), every=0.2)
        finally:
            running.stop()
    assert running.error is None


def test_j7_a_view_is_told_of_rows_whose_time_is_up(spark: Spark, broker: Broker, topic: str, tmp_path: Path) -> None:
    @hr.event(topic=f"{topic}-orders", key="order_id", time="at")
    class Order:
        order_id: str
        user_id: str
        at: datetime

    User, app = user_on(topic), hr.App("bench")  # noqa: N806
    orders = app.table(Order, idle="300 ms", name="orders")
    users = app.table(User, ttl="30 min", idle=None, name="users")
    orders.join(users, on="user_id", how="left").to(app.topic(f"{topic}-view", partitions=1, compact=True))
    users.group_by("city").agg(n=hr.count()).to(app.topic(f"{topic}-cities", partitions=1, compact=True))
    users.to(app.topic(f"{topic}-told", partitions=1), as_changes=True)
    bench = Bench(spark, broker, tmp_path, app)

    def renew(city: str, minute: float, few: int) -> None:
        bench.fill(User(f"u{n}", city, at(minute)) for n in range(few))

    def shown(name: str) -> dict[str, Any]:
        return {m.key().decode(): m.value() and json.loads(m.value()) for m in read(broker, f"{topic}-{name}")}

    with live(bench) as running:
        renew("Rome", 0, MANY)
        bench.fill(Order(f"o{n}", f"u{n}", at(1)) for n in range(MANY))
        until(lambda: shown("cities") == {"Rome": {"city": "Rome", "n": MANY}}, every=0.2)
        until(lambda: len(shown("view")) == MANY, every=0.2)
        renew("Rome", 20, MANY // 2)
        renew("Rome", 45, MANY // 2)
        until(reached(running, 45))
        until(lambda: shown("cities") == {"Rome": {"city": "Rome", "n": MANY // 2}}, every=0.2)
        before = keys(running, "users.versions")
        renew("Rome", 62, MANY // 2)
        until(lambda: keys(running, "users.versions") == MANY // 2)

    assert before == MANY  # deletions are remembered for as long as a row lives
    bench.check(stopped=True)
    assert {row["city"] for key, row in shown("view").items() if int(key[1:]) < MANY // 2} == {"Rome"}
    assert {row["city"] for key, row in shown("view").items() if int(key[1:]) >= MANY // 2} == {None}
    told = [json.loads(message.value()) for message in read(broker, f"{topic}-told")]
    gone = {(row["before"]["user_id"], row["version"]) for row in told if row["op"] == "delete"}
    assert gone == {(f"u{n}", "2026-11-03T10:30:00.000000Z") for n in range(MANY // 2, MANY)}


def test_w6_a_key_that_fell_silent_begins_anew(spark: Spark, broker: Broker, topic: str, tmp_path: Path) -> None:
    Click, app = click_on(topic), hr.App("bench")  # noqa: N806
    counted = app.stream(Click, disorder="0 s", idle="300 ms").window(hr.forever(ttl="30 min"), emit=hr.on_change())
    counted.agg(clicks=hr.count()).named("counted").to(app.topic(f"{topic}-out", partitions=1))
    bench = Bench(spark, broker, tmp_path, app)

    with live(bench) as running:
        for minute in (0, 10):
            bench.fill(Click(f"c{n}/{minute}", f"u{n}", at(minute)) for n in range(MANY))
            until(reached(running, minute))
        assert keys(running, "counted") == MANY
        bench.fill([Click("last", "u1", at(45))])
        until(lambda: keys(running, "counted") == 1)
        bench.fill([Click("anew", "u2", at(46))])
        until(reached(running, 46))

    bench.check(stopped=True)
    rows = [json.loads(message.value()) for message in read(broker, f"{topic}-out")]
    assert [(row["revision"], row["clicks"]) for row in rows if row["user_id"] == "u2"][-1] == (0, 1)
    assert max(row["clicks"] for row in rows if row["user_id"] == "u1") >= 2


def test_fe5_features_forget_a_key_that_fell_silent(spark: Spark, broker: Broker, topic: str, tmp_path: Path) -> None:
    """The row before is told of however old it is: nothing but its silence, and lateness, ends a key (FE7)."""
    Click, app = click_on(topic), hr.App("bench")  # noqa: N806
    clicks = app.stream(Click, disorder="0 s", idle="300 ms")
    user = app.features("user", key="user_id", source=clicks, ttl="30 min", lateness="10 min").over(
        "2 h", times=hr.count()
    )
    user = user.last("at")
    user.vectors.to(app.topic(f"{topic}-told", partitions=1), key="click_id")
    bench = Bench(spark, broker, tmp_path, app)

    with live(bench) as running:
        for minute in (0, 20):
            bench.fill(Click(f"c{n}/{minute}", f"u{n}", at(minute)) for n in range(MANY))
            until(reached(running, minute))
        bench.fill([Click("between", "u1", at(40))])
        bench.fill([Click("before", "u1", at(59))])
        until(reached(running, 59))
        assert keys(running, "user") == MANY
        bench.fill([Click("last", "u1", at(61))])
        until(lambda: keys(running, "user") == 1)
        bench.fill([Click("anew", "u2", at(62))])
        until(lambda: keys(running, "user") == 2)

    bench.check(stopped=True)
    told = {row["click_id"]: row for row in (json.loads(m.value()) for m in read(broker, f"{topic}-told"))}
    assert (told["last"]["times_2h"], told["last"]["last_at"]) == (5, "2026-11-03T10:59:00.000000Z")
    assert (told["anew"]["times_2h"], told["anew"]["last_at"]) == (1, None)
