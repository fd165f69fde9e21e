"""Steps by one key, one shuffle: the same results, and in real time rows of one event keep their order."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import headrace as hr
from headrace.base.clock import rfc3339
from headrace.log.broker import Broker
from headrace.spark.query import start
from headrace.spark.session import Spark
from tests.spark.bench import Bench
from tests.spark.flowing import Flowing, running, until, visit_on

DAY = datetime(2020, 1, 1, 10, tzinfo=UTC)


def declared(topic: str, event: Any) -> hr.App:
    """By page all of it: a pattern, features that remember its matches, what is the same as before, a window."""
    app = hr.App("bench")
    visits = app.stream(event, disorder="30 s", idle=None)
    found = app.pattern("dearer", key="page", select="page, b.visit").first("a", visits)
    dearer = found.then("b", where="b.spent > a.spent").within("1 min").matches
    page = app.features("page", key="page", source=visits, ttl="1 h").over("5 min", times=hr.count())
    page = page.over("5 min", of=dearer, dearer=hr.count()).seen()
    page.vectors.to(app.topic(f"{topic}-told", partitions=1), key="visit")
    changed = page.vectors.select("page as site, at, dearer_5min").key_by("site").changes("dearer_5min", keep="1 h")
    counted = changed.key_by("site").window(hr.tumbling("2 min"), lateness="0 s").agg(times=hr.count())
    counted.to(app.topic(f"{topic}-counted", partitions=1))
    return app


def rows(event: Any, count: int) -> list[Any]:
    chance = random.Random(5)
    at = lambda n: DAY + timedelta(seconds=3 * n - chance.choice((0, 0, 5, 20)))  # noqa: E731
    return [event(f"v{n:03d}", f"p{chance.randrange(7)}", at(n), chance.randrange(100)) for n in range(count)]


def test_four_steps_by_one_key_need_one_shuffle_and_give_what_the_reference_gives(
    spark: Spark, broker: Broker, topic: str, tmp_path: Path
) -> None:
    event = visit_on(topic)
    bench = Bench(spark, broker, tmp_path, declared(topic, event))
    for part in (rows(event, 200)[:120], rows(event, 200)[120:]):
        bench.fill(part)
        query = start(spark, bench.job("live", 40))
        query.processAllAvailable()
        plan = query._jsq.streamingQuery().lastExecution().executedPlan().toString()
        query.stop()
        assert (plan.count("TransformWithState "), plan.count("Exchange ")) == (4, 1)
    bench.check(stopped=True)


def test_p1_in_real_time_a_match_is_remembered_before_its_last_row_is_told_of_it(
    spark: Spark, broker: Broker, topic: str, tmp_path: Path
) -> None:
    """By another key, after a shuffle: they come from one partition and go to one."""
    event, app = visit_on(topic), hr.App("site")
    visits = app.stream(event, disorder="10 min")
    page = app.features("page", key="page", source=visits, ttl="1 h").over("5 min", times=hr.count()).seen()
    page.vectors.to(app.topic(f"{topic}-vectors", partitions=1))
    found = app.pattern("dearer", key="page", select="page, b.visit").first("a", page.vectors)
    dearer = found.next("b", where="b.spent > a.spent").within("1 min").matches
    own = app.features("own", key="visit", source=page.vectors, ttl="1 h")
    own.over("5 min", of=dearer, own=hr.count()).vectors.to(app.topic(f"{topic}-told", partitions=1), key="visit")
    flowing = Flowing(spark, broker, tmp_path, app)
    sent = rows(event, 150)
    with running(flowing, "10 min"):
        flowing.send(*sent)
        until(lambda: len(flowing.rows(f"{topic}-told")) == len(sent), every=0.1)
    with hr.testing.run(app, now=datetime(2026, 1, 1, tzinfo=UTC), realtime=True) as t:
        t.send(*sent)
        wanted = {row.visit: row.as_dict() | {"at": rfc3339(row.at)} for row in t.read(f"{topic}-told")}
    assert 20 < sum(row["own_5min"] for row in wanted.values()) < 100
    assert {row["visit"]: row for row in flowing.rows(f"{topic}-told")} == wanted
