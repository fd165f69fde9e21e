"""Rebuilding a store: what stands there afterwards is what the flow had written, and the flow goes on from there."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from deltalake import DeltaTable
from redis import Redis

import headrace as hr
from headrace.base.errors import CheckpointInUse, RebuildOpen, UsageError
from headrace.base.settings import Settings, load
from headrace.log import dead
from headrace.log.broker import Broker
from headrace.log.produce import Producer
from headrace.log.read import read
from headrace.log.topics import ensure
from headrace.model.topic import Topic
from headrace.ops.features import reader
from headrace.ops.rebuild import plan_rebuild, rebuild
from headrace.ops.run import run
from headrace.spark.session import Spark
from headrace.stack.stack import Addresses
from tests.spark.flowing import until
from tests.spark.test_restart import oracle
from tests.spark.test_stores import DAY, breaking, event_on, named, sql, visits


@pytest.fixture
def at_home(broker: Broker, settings: Settings, stack: Addresses, tmp_path: Path) -> Settings:
    mine = {"home": str(tmp_path / "home"), "cache": str(settings.cache), "kafka.bootstrap": broker.bootstrap}
    return load(mine | {"postgres.url": stack.postgres, "redis.url": stack.redis}, root=tmp_path, env={})


class Site:
    """Sessions to PostgreSQL and a topic, visits to the lake, what is known of pages to Redis. Two partitions, and a
    record that is broken."""

    def __init__(self, topic: str, broker: Broker, settings: Settings) -> None:
        self.broker, self.settings, self.name = broker, settings, named(topic)
        self.event = event_on(topic)
        self.app = hr.App(topic)
        stream = self.app.stream(self.event, disorder="10 s", idle="2 s")
        sessions = stream.window(hr.session(gap="40 s"), lateness="1 h").agg(times=hr.count(), spent=hr.sum("spent"))
        sessions.to(hr.postgres(self.name, key="page, window_start"))
        sessions.to(self.app.topic(f"{topic}-sessions", partitions=1))
        stream.to(hr.lake(self.name))
        page = (
            self.app.features("page", key="page", source=stream, ttl="1 d").over("1 h", times=hr.count()).last("visit")
        )
        self.page = page.to(hr.redis(f"{self.name}:{{page}}"))
        self.topic = topic
        ensure(broker, Topic(name=topic, partitions=2))
        broker_client = broker.producer({})
        broker_client.produce(topic, b"{", b"p0", 0)
        assert broker_client.flush(30) == 0

    def send(self, first: int, last: int) -> None:
        with Producer(self.broker, self.event) as producer:
            producer.send_many(visits(self.event, first, last))

    def sessions(self) -> list[tuple[Any, ...]]:
        order = "order by page, window_start"
        return sql(self.settings.text("postgres.url"), f"select page, window_start, times from {self.name} {order}")

    def clicks(self) -> Counter[str]:
        table = DeltaTable(self.settings.lake / self.name)
        return Counter(table.to_pyarrow_table(columns=["visit"])["visit"].to_pylist())

    def known(self) -> list[dict[str, Any]]:
        """What is known of both pages, ten minutes after 10."""
        with reader(self.app, self.page, self.settings) as asked:
            return asked.get_many([{"page": "p0"}, {"page": "p1"}], at=DAY + timedelta(minutes=10))

    def told(self) -> tuple[int, int]:
        """Records and dead letters: a rebuild writes neither."""
        records = sum(1 for _ in read(self.broker, f"{self.topic}-sessions"))
        return records, sum(1 for _ in dead.letters(self.broker, self.topic))

    def damage(self) -> None:
        with psycopg.connect(self.settings.text("postgres.url")) as database:
            database.execute(f"delete from {self.name} where page = 'p0'")  # type: ignore[arg-type]
            database.execute(f"update {self.name} set times = 99")  # type: ignore[arg-type]


def live(site: Site, spark: Spark, rows: int) -> None:
    """Runs until so many visits are read and time has come close to the last of them."""
    last = max(visit.at for visit in visits(site.event, 0, rows)) - timedelta(seconds=45)
    with run(site.app, site.settings, spark=spark) as running:
        (flow,) = running.flows
        with pytest.raises(CheckpointInUse):  # nobody rebuilds under its feet
            plan_rebuild(site.app, f"postgres:{site.name}", site.settings)
        until(lambda: flow.error or (flow.snapshot.watermark or last) > last)
        assert flow.error is None
    assert site.clicks().total() >= rows


def test_a_store_is_filled_as_it_was_and_the_flow_goes_on(
    spark: Spark, broker: Broker, at_home: Settings, topic: str
) -> None:
    site = Site(topic, broker, at_home)
    site.send(0, 60)
    live(site, spark, 60)
    before, known, told = site.sessions(), site.known(), site.told()
    assert before
    assert [row["times_1h"] for row in known] == [11, 10]

    site.damage()
    chosen = plan_rebuild(site.app, f"postgres:{site.name}", at_home)
    assert sum(end - start for refill in chosen.refills for start, end in refill.reads.values()) == 61
    rebuild(chosen, at_home, spark=spark)
    assert (site.sessions(), site.told()) == (before, told)
    rebuild(plan_rebuild(site.app, f"lake:{site.name}", at_home), at_home, spark=spark)
    assert site.clicks() == Counter(f"v{n}" for n in range(60))
    with Redis.from_url(at_home.text("redis.url")) as client:
        client.delete(f"{site.name}:p0")
    assert site.known() != known
    rebuild(plan_rebuild(site.app, f"redis:{site.name}:{{page}}", at_home), at_home, spark=spark)
    assert (site.known(), site.told()) == (known, told)

    site.send(60, 80)
    live(site, spark, 80)
    assert site.clicks() == Counter(f"v{n}" for n in range(80))
    wanted = oracle(site.app, visits(site.event, 0, 80)).table(f"postgres:{site.name}")
    found = set(site.sessions())
    assert found <= {(row.page, row.window_start, row.times) for row in wanted}
    assert len(wanted) - len(found) <= 4  # some are still open


def test_a_batch_that_spark_does_not_know_of_is_in_the_rebuilt_store(
    spark: Spark, broker: Broker, at_home: Settings, topic: str
) -> None:
    """It was written everywhere and its token is there: nobody writes it again, so the rebuild must."""
    site = Site(topic, broker, at_home)
    site.send(0, 30)
    with breaking(spark, "after-commit@0"), run(site.app, at_home, spark=spark) as running:
        until(lambda: running.flows[0].snapshot.state == "restarting")
    rebuild(plan_rebuild(site.app, f"lake:{site.name}", at_home), at_home, spark=spark)
    site.send(30, 40)
    live(site, spark, 40)
    assert site.clicks() == Counter(f"v{n}" for n in range(40))


def test_what_cannot_be_rebuilt_says_so(spark: Spark, broker: Broker, at_home: Settings, topic: str) -> None:
    site = Site(topic, broker, at_home)
    with pytest.raises(UsageError, match="has no store 'postgres:nothing'"):
        plan_rebuild(site.app, "postgres:nothing", at_home)
    with pytest.raises(UsageError, match="names 2 stores"):
        plan_rebuild(site.app, site.name, at_home)
    assert plan_rebuild(site.app, f"lake:{site.name}", at_home).refills == ()

    # one that was cut off: the flow does not go on with half a store
    site.send(0, 10)
    live(site, spark, 10)
    label = f"lake:{site.name}"
    (refill,) = plan_rebuild(site.app, label, at_home).refills
    refill.checkpoint.rebuild.remove()
    with pytest.raises(RebuildOpen, match="was cut off"):
        run(site.app, at_home, spark=spark)
    rebuild(plan_rebuild(site.app, label, at_home), at_home, spark=spark)
    live(site, spark, 10)
