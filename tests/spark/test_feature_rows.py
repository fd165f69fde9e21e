"""What features remember, from Kafka to Redis in the commit of a flow: asked for there, they are what was told."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import headrace as hr
from headrace.base.settings import Settings
from headrace.features.reader import FeatureReader
from headrace.log.broker import Broker
from headrace.spark.session import Spark
from headrace.stack.stack import Addresses
from tests.spark.flowing import Flowing
from tests.spark.test_stores import DAY, event_on, named


def test_features_are_kept_by_a_live_flow_and_told_anew(
    spark: Spark, broker: Broker, settings: Settings, stack: Addresses, topic: str, tmp_path: Path
) -> None:
    app, name = hr.App(topic), named(topic)
    visits = app.stream(event_on(topic), disorder="0 s", idle=None)
    visits.to(hr.lake(name))
    page = (
        app.features("page", key="page", source=visits.where("spent >= 0"), ttl="1 d", once="visit")
        .over("10 min", spent=hr.sum("spent"), times=hr.count(), squares=hr.sum("spent * spent"))
        .last("at", "visit")
    )
    page.to(hr.redis(f"{name}:{{page}}"))
    page.vectors.to(app.topic(f"{topic}-vectors", partitions=1))
    flowing = Flowing(spark, broker, tmp_path, app, settings=settings)
    rows = [
        flowing.event.cls(f"v{n:02}", f"p{n % 2}", DAY + timedelta(seconds=30 * n), hr.money(n - 2)) for n in range(40)
    ]
    with flowing.live() as query:
        query.batch(*rows[:25])
        query.batch(*rows[20:])  # five of them a second time

    reader = FeatureReader(page.node, app.outputs, redis=lambda: stack.redis, lake=settings.lake)
    vectors: list[dict[str, Any]] = sorted(flowing.rows(f"{topic}-vectors"), key=lambda row: row["visit"])
    asked = [{"visit": row.visit, "page": row.page, "at": row.at} for row in rows[2:]]
    offline = reader.as_of(asked, time="at", id="visit").to_pylist()
    kinds = ("visit", "page", "times_10min", "last_visit")
    assert [[row[kind] for kind in kinds] for row in offline] == [[row[kind] for kind in kinds] for row in vectors]
    assert [str(row["squares_10min"]) for row in offline] == [row["squares_10min"] for row in vectors]
    for last in offline[-2:]:
        told = reader.get(page=last["page"], at=last["at"])
        assert {k: told[k] for k in told if "10min" in k} == {k: last[k] for k in told if "10min" in k}
        assert (told["last_visit"], told["last_at"]) == (last["visit"], last["at"])
    reader.close()
