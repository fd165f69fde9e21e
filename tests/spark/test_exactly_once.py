"""Drivers that die or come back from the dead: what stands in the outputs is there exactly once (recipe 1)."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from headrace.base.errors import StateBehind
from headrace.base.settings import Settings
from headrace.log.broker import Broker
from headrace.log.produce import Producer
from headrace.log.read import read
from headrace.log.topics import ensure
from headrace.model.topic import Topic
from headrace.spark.session import Spark
from headrace.stack.stack import Addresses
from tests.spark.driving import driver, going_on, jvm_of
from tests.spark.test_restart import oracle, write_app

# A site whose visits are copied at every guarantee, and counted.
APP = """
site = hr.App("{topic}")
visits = site.stream(Visit, disorder="0 s", idle=None)
for guarantee in ("exactly-once", "at-least-once", "at-most-once"):
    visits.to(site.topic(f"{topic}-{{guarantee}}", partitions=1), guarantee=guarantee)
counts = visits.window(hr.tumbling("1 min"), lateness="0 s").agg(times=hr.count(), spent=hr.sum("spent"))
counts.named("counts").to(site.topic("{topic}-counts", partitions=1))
table = "{topic}".replace("-", "_")
visits.to(hr.postgres(table, key="visit"))
visits.to(hr.postgres(f"{{table}}_log"))
"""


def visits(cls: Any, first: int, last: int) -> list[Any]:
    """One a second, in order, so that what the flow says does not depend on its batches (rule R4)."""
    start = datetime(2020, 1, 1, 10, tzinfo=UTC)
    return [cls(f"v{n}", f"p{n % 3}", start + timedelta(seconds=n), n) for n in range(first, last)]


def send(broker: Broker, cls: Any, rows: list[Any]) -> None:
    with Producer(broker, cls) as producer:
        producer.send_many(rows)


def stored(url: str, topic: str) -> list[Counter[str]]:
    """How often each visit is in the table with a key, and in the one without."""
    table = topic.replace("-", "_")
    with psycopg.connect(url) as database:
        rows = [database.execute(f"select visit from {name}").fetchall() for name in (table, f"{table}_log")]  # type: ignore[arg-type]
    return [Counter(visit for (visit,) in found) for found in rows]


def ids(broker: Broker, topic: str) -> Counter[str]:
    return Counter(dict(message.headers())["hr-id"].decode() for message in read(broker, topic))


@pytest.mark.timeout(600)  # four drivers start from nothing, maybe on a busy machine
def test_after_four_deaths_in_one_batch_every_guarantee_holds(
    spark: Spark, settings: Settings, broker: Broker, stack: Addresses, topic: str, tmp_path: Path
) -> None:
    declared = write_app(tmp_path, topic, APP)
    app, cls = declared["site"], declared["Visit"]
    ensure(broker, Topic(name=topic, partitions=1))
    rows = visits(cls, 0, 400)
    send(broker, cls, rows[:300])

    # when the driver dies in its first batch, and again each time it tries it
    after_store = f"after-store/postgres:{topic.replace('-', '_')}"
    for instant in ("after-rows", after_store, "after-token", "after-commit"):
        with driver(
            tmp_path, settings, broker, "run", "visiting", failpoint=f"{instant}@0", postgres=stack.postgres
        ) as dying:
            assert dying.ended() != 0, instant
            assert "JVM has ended" in "".join(dying.err)

    # then the batch that was committed is not written again, and the flow goes on
    send(broker, cls, rows[300:])
    t = oracle(app, rows)
    closed = datetime(2020, 1, 1, 10, 6, tzinfo=UTC)  # the last window stays open in a live run
    wanted = [w for row in t.read(f"{topic}-counts") if (w := row.as_dict())["window_end"] <= closed]
    counted = lambda: [json.loads(m.value()) for m in read(broker, f"{topic}-counts")]  # noqa: E731
    with going_on(tmp_path, spark, broker, app, postgres=stack.postgres) as last:
        last.until(lambda: ids(broker, f"{topic}-exactly-once").total() >= 400, every=0.5)
        last.until(lambda: len(counted()) >= len(wanted), every=0.5)  # windows close a batch later

    known = {row.visit for row in rows}
    by_visit = lambda name: Counter(json.loads(m.value())["visit"] for m in read(broker, f"{topic}-{name}"))  # noqa: E731
    assert by_visit("exactly-once") == Counter(known)
    assert stored(stack.postgres, topic) == [Counter(known), Counter(known)]
    least, most = by_visit("at-least-once"), by_visit("at-most-once")
    assert set(least) == known
    assert least.total() > len(known)
    assert set(most.values()) == {1}  # what it may lose, a test of the sink shows
    told = Counter((c["page"], c["window_start"][11:16], c["times"], c["spent"]) for c in counted())
    assert told == Counter((w["page"], f"{w['window_start']:%H:%M}", w["times"], w["spent"]) for w in wanted)


@pytest.mark.timeout(300)
def test_a_driver_that_comes_back_after_another_took_over_writes_nothing(
    spark: Spark, settings: Settings, broker: Broker, stack: Addresses, topic: str, tmp_path: Path
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    declared = write_app(one, topic, APP)
    app, cls = declared["site"], declared["Visit"]
    ensure(broker, *(Topic(name=name, partitions=1) for name in (topic, f"{topic}-exactly-once")))
    rows = visits(cls, 0, 120)
    written = lambda: ids(broker, f"{topic}-exactly-once")  # noqa: E731
    with driver(one, settings, broker, "run", "visiting", postgres=stack.postgres) as first:
        send(broker, cls, rows[:60])
        first.until(lambda: written().total() == 60, every=0.5)

        # given a driver that stands still, and a second one that goes on from a copy of its state
        stopped = [first.process.pid, int(jvm_of(first.process.pid))]
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        shutil.copytree(one, two)
        with going_on(two, spark, broker, app, postgres=stack.postgres) as second:
            send(broker, cls, rows[60:])
            second.until(lambda: written().total() == 120, every=0.5)

            # when the first comes back
            for pid in reversed(stopped):
                os.kill(pid, signal.SIGCONT)

            # then it is told so, and has written nothing
            assert first.ended() == 1
            assert "[fenced]" in "".join(first.err)

    # nor does it write if it is started again: its next batches have the numbers of those that the second wrote
    send(broker, cls, visits(cls, 120, 130))
    with pytest.raises(StateBehind), going_on(one, spark, broker, app, postgres=stack.postgres) as again:
        again.ended()
    assert set(written().values()) == {1}
    assert written().total() == 120
    assert stored(stack.postgres, topic) == [Counter(row.visit for row in rows)] * 2
