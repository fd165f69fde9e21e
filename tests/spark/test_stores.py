"""Stores in a flow's commit: what the reference says stands in each of them once, wherever a batch breaks."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable
from redis import Redis

import headrace as hr
from headrace.base.errors import StoreUnreachable, TableMismatch
from headrace.base.settings import Settings, load
from headrace.log.broker import Broker
from headrace.ops.run import run
from headrace.spark.query import start
from headrace.spark.running import Running
from headrace.spark.session import Spark
from headrace.spark.storing import storing
from headrace.stack import stack as embedded
from headrace.stack.stack import Addresses
from headrace.stores.lake import LakeStore
from tests.spark.flowing import Flowing, until
from tests.spark.test_restart import oracle

DAY = datetime(2020, 1, 1, 10, tzinfo=UTC)


def event_on(topic: str) -> Any:
    @hr.event(topic=topic, key="page", time="at", id="visit")
    class Visit:
        visit: str
        page: str
        at: datetime
        spent: hr.Money

    return Visit


def named(topic: str) -> str:
    return topic.replace("-", "_")


def site(topic: str, event: Any = None) -> hr.App:
    """Sessions of each page to PostgreSQL, Redis and a topic, visits as they are to the lake and to files."""
    app, name = hr.App(topic), named(topic)
    visits = app.stream(event or event_on(topic), disorder="0 s", idle=None)
    sessions = visits.window(hr.session(gap="40 s"), lateness="1 h").agg(times=hr.count(), spent=hr.sum("spent"))
    sessions.to(hr.postgres(name, key="page, window_start"))
    sessions.to(hr.redis(f"{name}:{{page}}:{{window_start}}"))
    visits.to(hr.lake(name, partition="day(at)"))
    visits.to(hr.files(name))
    sessions.to(app.topic(f"{topic}-sessions", partitions=1))
    return app


def visits(event: Any, first: int, last: int) -> list[Any]:
    """Two pages; every tenth comes half a minute late, so that sessions that were told apart are one after all."""
    at = lambda n: DAY + timedelta(seconds=30 * n - 65 * (n % 10 == 9))  # noqa: E731
    return [event(f"v{n}", f"p{n % 2}", at(n), hr.money(n)) for n in range(first, last)]


class Reader:
    """What a user of the stores sees."""

    def __init__(self, topic: str, settings: Settings, stack: Addresses) -> None:
        self._name, self._settings, self._stack = named(topic), settings, stack

    def postgres(self) -> list[tuple[Any, ...]]:
        return sql(self._stack.postgres, f"select page, window_start, times, spent from {self._name} order by 1, 2")

    def redis(self) -> list[tuple[Any, ...]]:
        with Redis.from_url(self._stack.redis, decode_responses=True) as client:
            found = [json.loads(client.get(key)) for key in client.keys(f"{self._name}:*")]  # type: ignore[union-attr, arg-type]
        return sorted((row["page"], row["window_start"], row["times"], row["spent"]) for row in found)

    def lake(self) -> Counter[str]:
        table = DeltaTable(self._settings.lake / self._name)
        return Counter(table.to_pyarrow_table(columns=["visit"])["visit"].to_pylist())

    def files(self) -> Counter[str]:
        folder = ds.dataset(self._settings.files / self._name, format="parquet")
        return Counter(folder.to_table(columns=["visit"])["visit"].to_pylist())


def sql(url: str, text: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute(text).fetchall()  # type: ignore[arg-type]


def check(flowing: Flowing, reader: Reader, app: hr.App, rows: list[Any]) -> None:
    """Everything that the reference says of these rows is there, and nothing else."""
    t = oracle(app, rows)
    wanted = [
        (row.page, row.window_start, row.times, row.spent) for row in t.table(f"postgres:{app.name.replace('-', '_')}")
    ]
    assert reader.postgres() == sorted(wanted)
    assert [(page, times, spent) for page, _, times, spent in reader.redis()] == [
        (page, times, str(spent)) for page, _, times, spent in sorted(wanted)
    ]
    assert reader.lake() == reader.files() == Counter(row.visit for row in rows)
    assert len(set(flowing.ids(f"{app.name}-sessions"))) == len(flowing.ids(f"{app.name}-sessions"))


def test_a_lake_is_tidied_when_readers_of_topics_have_the_batch(
    spark: Spark, broker: Broker, settings: Settings, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = hr.App(topic)
    stream = app.stream(event_on(topic), disorder="0 s")
    stream.to(app.topic(f"{topic}-out", partitions=1))
    stream.to(hr.lake(named(topic)))
    flowing = Flowing(spark, broker, tmp_path, app, settings=settings)
    flowing.send(*visits(flowing.event.cls, 0, 10))
    read: list[int] = []
    monkeypatch.setattr(LakeStore, "tidy", lambda _: read.append(len(flowing.rows(f"{topic}-out"))))
    flowing.history()
    assert read == [10]


def test_one_flow_writes_every_store_and_a_topic(
    spark: Spark, broker: Broker, settings: Settings, stack: Addresses, topic: str, tmp_path: Path
) -> None:
    app = site(topic)
    flowing = Flowing(spark, broker, tmp_path, app, settings=settings)
    rows = visits(flowing.event.cls, 0, 60)
    flowing.send(*rows)
    flowing.produce([(b"p0", b"{", [], 0, 0)])

    flowing.history(max_records=20)

    check(flowing, Reader(topic, settings, stack), app, rows)
    assert [letter.reason for letter in flowing.letters()] == ["undecodable"]
    assert not list(flowing.checkpoint.staged.iterdir())


def instants(topic: str) -> list[str]:
    name = named(topic)
    stores = (f"postgres:{name}", f"redis:{name}:{{page}}:{{window_start}}", f"lake:{name}", f"files:{name}")
    return ["before-stores", *(f"after-store/{label}" for label in stores), "after-token", "after-commit"]


@contextmanager
def breaking(spark: Spark, instant: str) -> Iterator[None]:
    """Queries fail at this instant of a batch and those after it: `after-token@2`."""
    system = spark.session._jvm.java.lang.System
    system.setProperty("headrace.failpoint", f"{instant}@throw")
    try:
        yield
    finally:
        system.clearProperty("headrace.failpoint")


def test_a_batch_that_breaks_between_stores_is_in_each_once(
    spark: Spark, broker: Broker, settings: Settings, stack: Addresses, topic: str, tmp_path: Path
) -> None:
    app = site(topic)
    flowing = Flowing(spark, broker, tmp_path, app, settings=settings)
    rows = visits(flowing.event.cls, 0, 60)
    flowing.send(*rows)
    job = flowing.job("history", max_records=20)
    for instant in instants(topic):  # each run breaks one step later in the same batch
        with (
            breaking(spark, f"{instant}@2"),
            storing(spark, job.stores, job.id, job.checkpoint.staged),
            pytest.raises(Exception, match=re.escape(f"failpoint {instant}")),
        ):
            start(spark, job).awaitTermination()

    flowing.history(max_records=20)
    check(flowing, Reader(topic, settings, stack), app, rows)


def test_a_view_with_deletes_is_a_table(
    spark: Spark, broker: Broker, settings: Settings, stack: Addresses, topic: str, tmp_path: Path
) -> None:
    @hr.event(topic=topic, key="order_id", time="at")
    class Order:
        order_id: str
        amount: int
        at: datetime

    app, name = hr.App(topic), named(topic)
    orders = app.table(Order)
    orders.where("amount > 10").to(hr.postgres(name))
    orders.to(hr.redis(f"{name}:{{order_id}}"))
    flowing = Flowing(spark, broker, tmp_path, app, settings=settings)
    at = lambda n: DAY + timedelta(seconds=n)  # noqa: E731
    with flowing.live() as query:
        query.batch(*(Order(f"o{n}", 10 * n, at(n)) for n in range(4)))
        assert [row[0] for row in sql(stack.postgres, f"select order_id from {name} order by 1")] == ["o2", "o3"]
        query.batch(Order("o2", 5, at(10)))
        flowing.produce([(b"o3", None, [], int(at(11).timestamp() * 1000), 0)])
        query.batch(Order("o4", 40, at(12)))
    assert sql(stack.postgres, f"select order_id, amount from {name}") == [("o4", 40)]
    with Redis.from_url(stack.redis, decode_responses=True) as client:
        assert sorted(client.keys(f"{name}:*")) == [f"{name}:{id}" for id in ("o0", "o1", "o2", "o4")]  # type: ignore[type-var]


def test_a_table_with_other_columns_and_a_store_that_is_away_are_refused_at_the_start(
    broker: Broker, settings: Settings, stack: Addresses, topic: str, tmp_path: Path
) -> None:
    mine = {"home": str(tmp_path), "cache": str(settings.cache), "kafka.bootstrap": broker.bootstrap}
    urls = {"postgres.url": stack.postgres, "redis.url": stack.redis}
    sql_do(stack.postgres, f"create table {named(topic)} (page text primary key, window_start bigint not null)")
    with pytest.raises(TableMismatch, match=named(topic)):
        run(site(topic), load(mine | urls, root=tmp_path, env={}))
    urls["postgres.url"] = "postgresql://nobody@127.0.0.1:1/none"
    with pytest.raises(StoreUnreachable) as away:
        run(site(topic), load(mine | urls, root=tmp_path, env={}))
    assert away.value.exit_code == 3


def sql_do(url: str, text: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute(text)  # type: ignore[arg-type]


@pytest.mark.timeout(240)
def test_postgres_away_in_the_middle_costs_nothing(
    spark: Spark, broker: Broker, settings: Settings, topic: str, tmp_path: Path
) -> None:
    """Its own PostgreSQL: this one stops."""
    home = tmp_path / "stack"
    up = lambda: embedded.up(home, settings.cache, parts=("postgres",), foreground=True)  # noqa: E731
    app, name = hr.App(topic), named(topic)
    stream = app.stream(event_on(topic), disorder="0 s")
    stream.to(hr.postgres(name, key="visit"))
    stream.to(hr.postgres(f"{name}_log"))
    stream.to(app.topic(f"{topic}-out", partitions=1))
    mine = load({"home": str(home), "postgres.url": up().postgres}, root=tmp_path, env={})
    try:
        flowing = Flowing(spark, broker, tmp_path, app, settings=mine)
        running = Running(spark, flowing.job("live", max_records=100), lambda _: None)
        try:
            flowing.send(*visits(flowing.event.cls, 0, 200))
            until(lambda: running.snapshot.batch >= 1)
            embedded.down(home)
            flowing.send(*visits(flowing.event.cls, 200, 400))
            until(lambda: running.snapshot.state == "waiting")
            assert re.fullmatch(f"postgres:{name}(_log)? has not taken batch \\d+", running.snapshot.error)
            until(lambda: running.snapshot.state == "restarting")
            shown = running.snapshot
            assert "store-unreachable" in shown.error
            assert shown.since is not None
            assert shown.next_try is not None
            assert shown.since < shown.next_try
            assert sum(part.behind for part in shown.partitions) == 200
            up()
            count = f"select count(*) from {name}"
            until(lambda: sql(mine.text("postgres.url"), count) == [(400,)], every=0.2)
        finally:
            running.stop()
        assert running.error is None
        assert sql(mine.text("postgres.url"), f"select count(*), count(distinct hr_id) from {name}_log") == [(400, 400)]
        assert len(flowing.rows(f"{topic}-out")) == 400
    finally:
        embedded.down(home)
