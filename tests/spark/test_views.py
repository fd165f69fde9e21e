"""Views from Kafka to Kafka: upserts, tombstones and changes equal the reference on the schedule that was recorded."""

from __future__ import annotations

import json
import random
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
from tests.spark.bench import PARTITIONS, Bench
from tests.spark.flowing import until

DAY = datetime(2026, 11, 3, 10, tzinfo=UTC)


class Viewing(Bench):
    """Orders joined to users, who point to their friends; what is made of the view, and what is told of it."""

    def __init__(
        self, spark: Spark, broker: Broker, home: Path, topic: str, *, all: bool, ttl: str | None = None
    ) -> None:
        @hr.event(topic=f"{topic}-orders", key="order_id", time="at")
        class Order:
            order_id: str
            user_id: str | None
            amount: int
            price: hr.Money
            weight: float
            at: datetime

        @hr.event(topic=f"{topic}-users", key="user_id", time="since")
        class User:
            user_id: str
            city: str | None
            friend: str | None
            since: datetime

        self.order, self.user = Order, User
        app = hr.App("bench")
        self.topic = lambda name, compact=True: app.topic(f"{topic}-{name}", partitions=2, compact=compact)
        orders = app.table(Order, ttl=ttl, idle="300 ms", disorder="20 s", name="orders")
        users = app.table(User, ttl=ttl, idle="300 ms", disorder="20 s", name="users")
        view = orders.join(users, on="user_id", how="left").named("seen")
        view.to(self.topic("view"))
        cities = view.group_by("city").agg(
            n=hr.count(), spent=hr.sum("price"), mean=hr.avg("price"), most=hr.max("amount"), least=hr.min("at"),
            total=hr.sum("weight"), usual=hr.avg("weight"), kinds=hr.distinct("amount"), best=hr.top(2, "price"),
            half=hr.quantile("weight", 0.5),
        )  # fmt: skip
        cities.to(self.topic("cities"))
        if all:
            self.more(orders, users, view, cities)
        super().__init__(spark, broker, home, app)

    def more(self, orders: hr.View, users: hr.View, view: hr.View, cities: hr.View) -> None:
        """Changes told, filters, projections, a filter that two steps read, a self join, views of views."""
        view.to(self.topic("all", compact=False), as_changes=True)
        view.changes().where("op <> 'insert'").to(self.topic("stream", compact=False))
        cities.where("n > 1").group_by("n % 2 = 0 as even").agg(cities=hr.count()).to(self.topic("evens"))
        some = orders.where("amount > 2")
        huge = some.join(users, on="user_id").select("order_id, city, amount * 2400000000000000000 as huge")
        huge.to(self.topic("huge"))
        friends = users.join(users.alias("friends"), on="users.friend = friends.user_id", prefix="friend_", how="left")
        some.alias("mine").join(friends.alias("buyers"), on="mine.user_id = buyers.user_id").to(self.topic("friends"))

    def change(self, seed: int, rows: int) -> None:
        """Versions out of order, equal times, tombstones, moves, null keys, rows that nobody is there for."""
        chance = random.Random(seed)
        with Producer(self.broker, self.order, acks=1) as orders, Producer(self.broker, self.user, acks=1) as users:
            for number in range(rows):
                behind = chance.choice((0, 0, 0, 5, 60))
                at = DAY + timedelta(seconds=60 * seed + 2 * number - behind, microseconds=chance.choice((0, 1)))
                order, user = f"o{chance.randrange(8)}", f"u{chance.randrange(4)}"
                buyer = chance.choice((None, "u9", user, user))
                if chance.random() < 0.15:
                    orders.send_tombstone(order, at=at.replace(microsecond=0))
                elif chance.random() < 0.1:
                    users.send_tombstone(user, at=at.replace(microsecond=0))
                elif chance.random() < 0.5:
                    price, weight = hr.money(chance.randrange(-5, 9)), chance.choice((0.1, 2.5, -0.0, 1024.0))
                    orders.send(self.order(order, buyer, chance.randrange(5), price, weight, at))
                else:
                    city = chance.choice((None, "Rome", "Oslo", "Rome"))
                    users.send(self.user(user, city, chance.choice((None, "u0", "u1")), at))


@pytest.mark.parametrize("ttl", [None, "1 min"])
def test_j5_history_equals_the_reference_on_the_recorded_schedule(
    spark: Spark, broker: Broker, topic: str, tmp_path: Path, ttl: str | None
) -> None:
    """All records to the letter, and where every row of every step went (rule D3); also where rows have a time to live
    (rule J7)."""
    run = Viewing(spark, broker, tmp_path, topic, all=True, ttl=ttl)
    run.change(1, 120)

    running = Running(spark, run.job("history", 30), lambda _: None)
    until(lambda: running.snapshot.state in ("stopped", "failed", "restarting"), within=100, every=0.05)

    assert running.error is None
    engine = run.check()
    assert {record.topic for record in engine.records} == {leaving.target.name for leaving in run.flow.exits}
    assert any(letter.step == "select-1" for letter in engine.dead)
    counts = {c.step: (c.entered, c.used, c.filtered, c.dead, c.held) for c in running.snapshot.counts if c.entered}
    assert counts == {
        name: (c.received, c.used, c.filtered, c.dead, c.held) for name, c in engine.counts().items() if c.received
    }


def test_j5_a_live_run_with_stops_equals_the_reference(
    spark: Spark, broker: Broker, topic: str, tmp_path: Path
) -> None:
    run = Viewing(spark, broker, tmp_path, topic, all=False)
    for number in (1, 2):
        run.change(number, 60)
        run.live(30, rows=60, timed=False)
    run.check(stopped=True)


def test_f2_the_changes_of_a_view_are_a_table_of_another_app(
    spark: Spark, broker: Broker, topic: str, tmp_path: Path
) -> None:
    """Before and after as a view writes them, read back: the same rows, of every type, and the same groups of them."""

    class Telling(Viewing):
        def more(self, orders: hr.View, users: hr.View, view: hr.View, cities: hr.View) -> None:
            app = view.app
            view.to(app.topic(f"{topic}-changes", partitions=PARTITIONS), as_changes=True)

    @hr.event(topic=f"{topic}-changes", key="order_id")
    class Seen:
        order_id: str
        user_id: str | None
        amount: int
        price: hr.Money
        weight: float
        at: datetime
        city: str | None
        friend: str | None
        since: datetime | None

    first = Telling(spark, broker, tmp_path, topic, all=True)
    for number in (1, 2):
        first.change(number, 60)
    first.history(25)
    app = hr.App("other")
    seen = app.table(Seen, changes=True, name="seen")
    seen.to(app.topic(f"{topic}-again", partitions=2, compact=True))
    seen.group_by("city").agg(n=hr.count(), spent=hr.sum("price")).to(
        app.topic(f"{topic}-cities-again", partitions=2, compact=True)
    )
    Bench(spark, broker, tmp_path, app).history(25)

    changes = [json.loads(message.value()) for message in read(broker, f"{topic}-changes")]
    assert {change["op"] for change in changes} == {"insert", "update", "delete"}
    assert shown(broker, f"{topic}-again") == shown(broker, f"{topic}-view")
    whole = shown(broker, f"{topic}-cities")
    cities = {key: {name: row[name] for name in ("city", "n", "spent")} for key, row in whole.items()}
    assert shown(broker, f"{topic}-cities-again") == cities
    assert cities


def shown(broker: Broker, topic: str) -> dict[str, Any]:
    """What a reader of a compacted topic holds."""
    last = {message.key().decode(): message.value() for message in read(broker, topic)}
    return {key: json.loads(value) for key, value in last.items() if value is not None}
