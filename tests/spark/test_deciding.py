"""A flow that decides, on Kafka and Spark: its policy replaced while rows pass, broken ones kept out."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.base.errors import ModeRefused
from headrace.log import policy as log
from headrace.log.broker import Broker
from headrace.spark.deciding import check_master
from headrace.spark.running import Running
from headrace.spark.session import Spark
from tests.spark.flowing import Flowing, until, visit_on
from tests.steps.boosted import model

DAY = datetime(2020, 1, 1, 10, tzinfo=UTC)
LARGE = hr.Rule(name="large", when="spent > 10", action="review")
HUGE = hr.Rule(name="huge", when="spent > 1000", action="decline", reason="more than a thousand")
SCORED = "*, cast(spent as float) as amount, 1 as hour, 0.5 as km, spent > 3 as times"


def flowing_on(spark: Spark, broker: Broker, topic: str, home: Path) -> tuple[Flowing, Any]:
    event, app = visit_on(topic), hr.App("site")
    visits = app.stream(event, disorder="10 s").select(SCORED)
    visits.decide(topic, default="decline").named("judge").to(app.topic(f"{topic}-said", partitions=1))
    return Flowing(spark, broker, home, app), event


def publish(broker: Broker, name: str, policy: hr.Policy, *, shadow: bool = False) -> str:
    return log.seen(name, log.publish(broker, name, policy.as_text(), shadow=shadow))


def test_live_rows_are_decided_as_in_the_reference_and_every_one_is_counted(
    spark: Spark, broker: Broker, topic: str, tmp_path: Path
) -> None:
    flowing, event = flowing_on(spark, broker, topic, tmp_path)
    visits = [event(f"v{n}", f"p{n % 3}", DAY + timedelta(seconds=n), 7 * n) for n in range(12)]
    first = hr.Policy(rules=[LARGE], model=model(), thresholds={"review": 0.2, "decline": 0.6})
    later = hr.Policy(rules=[HUGE])

    # when one policy stands before the flow starts, and another comes while it runs
    seen = publish(broker, topic, first)
    with flowing.live() as live:
        live.batch(*visits[:6])
        publish(broker, topic, later, shadow=True)
        until(lambda: (live.batch(visits[6]), flowing.rows(f"{topic}-said")[-1]["shadow"])[1], every=0.1)
        counts = live.counts()["judge"]

    # then each says what the reference says
    rows = flowing.rows(f"{topic}-said")
    with hr.testing.run(flowing.app) as t:
        t.policy(topic, first)
        t.send(*visits[:6])
        t.policy(topic, later, shadow=True)
        t.send(visits[6])
        wanted = [dict(row.as_dict()) for row in t.read(f"{topic}-said", "visit, decision, reasons, score, shadow")]
    said = [{name: row[name] for name in wanted[0]} for row in [*rows[:6], rows[-1]]]
    assert said == wanted
    assert {row["policy_seen"] for row in rows} == {seen}
    assert (counts.entered, counts.used, counts.missing) == (len(rows), len(rows), 0)


def test_in_real_time_the_next_rows_go_by_the_new_policy_and_a_broken_one_is_kept_out(
    spark: Spark, broker: Broker, topic: str, tmp_path: Path
) -> None:
    flowing, event = flowing_on(spark, broker, topic, tmp_path)
    sent: list[Any] = []

    def said_next() -> dict[str, Any]:
        """What is said of one more visit, when it is there."""
        sent.append(event(f"v{len(sent)}", "p", DAY + timedelta(seconds=len(sent)), 5_000))
        flowing.send(sent[-1])
        until(lambda: len(flowing.rows(f"{topic}-said")) == len(sent), every=0.05)
        return flowing.rows(f"{topic}-said")[-1]

    running = Running(spark, flowing.job("realtime", pace=timedelta(minutes=10)), lambda _: None)
    try:
        first = said_next()
        assert (first["decision"], first["reasons"]) == ("decline", ["nothing is published"])

        # when one comes while rows pass, then something that is none, then one for other columns
        seen = publish(broker, topic, hr.Policy(rules=[LARGE, HUGE]))
        until(lambda: said_next()["policy_seen"] == seen)
        log.publish(broker, topic, '{"rules": 7}', shadow=False)
        publish(broker, topic, hr.Policy(rules=[hr.Rule(name="x", when="nowhere > 1", action="allow")]))
        until(lambda: running.snapshot.policies and running.snapshot.policies[0].refused == 2)

        # then what stood stands
        last = said_next()
        (state,) = running.snapshot.policies
        assert (last["decision"], last["reasons"]) == ("decline", ["large", "more than a thousand"])
        assert last["policy_seen"] == state.seen == seen
        assert "there is no column 'nowhere'" in state.error

        # and until it is taken away
        log.publish(broker, topic, None, shadow=False)
        until(lambda: said_next()["reasons"] == ["nothing is published"])
        assert running.snapshot.batch == -1  # all in one interval: nothing was started anew
    finally:
        running.stop()
    assert running.error is None

    # nor is it taken for the last one by a flow that starts now
    publish(broker, topic, hr.Policy(rules=[HUGE]))
    log.publish(broker, topic, json.dumps([]), shadow=False)
    snapshot = flowing.history()
    assert [row["reasons"] for row in flowing.rows(f"{topic}-said")[-len(sent) :]] == [["more than a thousand"]] * len(
        sent
    )
    assert snapshot.error == ""


def test_on_a_cluster_a_flow_that_decides_is_refused() -> None:
    with pytest.raises(ModeRefused, match="a flow that decides cannot run on spark://far:7077"):
        check_master("spark://far:7077")
    check_master("local[2]")
