"""The checkers catch a system that is really weakened: each mutant is a flow whose batch breaks and is run again."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

import headrace as hr
from headrace.base.settings import Settings
from headrace.chaos.books import Books
from headrace.chaos.check import Finding, check_ledger, check_stores
from headrace.chaos.outputs import Outputs
from headrace.chaos.stored import Stored
from headrace.chaos.traffic import START
from headrace.log import topics
from headrace.log.broker import Broker
from headrace.log.follow import Follower
from headrace.spark.commits import commits_topic
from headrace.spark.session import Spark
from headrace.spark.storing import storing
from headrace.stores import lake_sql
from tests.spark.flowing import Flowing
from tests.spark.test_commit_sink import broken

NUMBERS = range(50)


class Mutant:
    """A flow that copies transfers to a topic and to the lake, at these guarantees."""

    def __init__(self, spark: Spark, broker: Broker, settings: Settings, topic: str, home: Path) -> None:
        self._parts = spark, broker, home
        self._settings, self._topic, self._table = settings, topic, topic.replace("-", "_")

    def declare(self, *, topic: Any = "exactly-once", lake: Any = "exactly-once") -> None:
        spark, broker, home = self._parts
        app = hr.App(self._topic)
        transfers = app.stream(_event(self._topic), disorder="10 s")
        transfers.to(app.topic(f"{self._topic}-out", partitions=1), guarantee=topic)
        transfers.to(hr.lake(self._table), guarantee=lake)
        self.flowing = Flowing(spark, broker, home, app, settings=self._settings)
        made = self.flowing.event.cls
        self.flowing.send(*(made(n, f"c{n % 3}", START + timedelta(seconds=n)) for n in NUMBERS))

    def breaks(self, instant: str) -> None:
        """A run that breaks there."""
        flowing = self.flowing
        job = flowing.job("history")
        with storing(flowing.spark, job.stores, job.id, job.checkpoint.staged):
            broken(flowing, instant)

    def ledger(self, isolation: str = "read_committed") -> Finding:
        follower = Follower(self.flowing.broker, f"{self._topic}-out", isolation=isolation)
        found = [msgspec.json.decode(message.value())["transfer"] for message in follower.refresh()]
        follower.close()
        return check_ledger(Books(made=set(NUMBERS)), Outputs(ledger=found))

    def lake(self) -> Finding:
        rows = lake_sql.ask(self._settings.lake, f"select transfer from lake.{self._table}").rows
        return check_stores(Books(made=set(NUMBERS)), Outputs(), Stored(ledger=[row["transfer"] for row in rows]))


def _event(topic: str) -> Any:
    @hr.event(topic=topic, key="card", time="at", id="transfer")
    class Transfer:
        transfer: int
        card: str
        at: datetime

    return Transfer


@pytest.fixture
def mutant(spark: Spark, broker: Broker, settings: Settings, topic: str, tmp_path: Path) -> Mutant:
    return Mutant(spark, broker, settings, topic, tmp_path)


def test_who_reads_uncommitted_sees_a_batch_twice(mutant: Mutant) -> None:
    mutant.declare()
    mutant.breaks("after-rows")
    mutant.flowing.history()
    assert mutant.ledger().sound
    assert mutant.lake().sound
    assert not mutant.ledger("read_uncommitted").sound


def test_without_its_token_a_batch_is_written_twice(mutant: Mutant) -> None:
    mutant.declare()
    mutant.breaks("after-commit")
    assert mutant.ledger().sound
    commits = commits_topic(mutant.flowing.plan.app)
    topics.delete(mutant.flowing.broker, commits.name)
    mutant.flowing.checkpoint.commits_file.unlink()
    mutant.flowing.history()
    assert not mutant.ledger().sound
    assert mutant.lake().sound  # it has a note of its own


def test_at_least_once_repeats_rows_of_a_topic(mutant: Mutant) -> None:
    mutant.declare(topic="at-least-once")
    mutant.breaks("after-rows")
    mutant.flowing.history()
    assert not mutant.ledger().sound


def test_without_its_ledger_a_store_has_a_batch_twice(mutant: Mutant) -> None:
    mutant.declare(lake="at-least-once")
    mutant.breaks("after-token")
    mutant.flowing.history()
    assert mutant.ledger().sound
    assert not mutant.lake().sound
