"""The watermark of both engines, turn by turn, on random streams and tables (rules T2-T4, T7)."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

import headrace as hr
from headrace.log.broker import Broker
from headrace.plan.plan import build
from headrace.reference.frontier import Watermark
from headrace.spark.checkpoint import Checkpoint
from headrace.spark.job import Job
from headrace.spark.session import Spark
from tests.properties import DEPTH

CASES = 300 * DEPTH
START = 1_000_000  # ms


def test_t3_t4_t7_the_watermark_is_the_same_on_both_engines(spark: Spark, tmp_path: Path) -> None:
    cases, expected = zip(*(made(Random(seed), tmp_path) for seed in range(CASES)), strict=True)

    found = json.loads(spark.jvm.PureFrontier.run(json.dumps(cases)))

    for seed, (python, scala) in enumerate(zip(expected, found, strict=True)):
        assert python == scala, f"seed {seed}: {json.dumps(cases[seed])}"
    moved = [[w for w in turns if w is not None] for turns in expected]
    assert sum(len(set(turns)) > 3 for turns in moved) > CASES / 5  # time moves in many of them
    assert any(not turns for turns in moved)  # and is held in some


def made(random: Random, home: Path) -> tuple[dict[str, Any], list[int | None]]:
    """A case for Scala, and what the reference says: rows, marks and silence, in random order."""
    plan = build(declared(random))
    (flow,) = plan.flows
    job = Job(
        plan=plan, flow=flow, mode="live", broker=Broker(bootstrap="none"), checkpoint=Checkpoint.of(home, plan, flow)
    )
    widths = {topic: random.randint(1, 2) for topic in flow.topics}
    clock, event_time = START, START * 1_000
    watermark = Watermark(flow, clock, widths)
    known = {(t, p): [None, clock] for t, topic in enumerate(flow.topics) for p in range(widths[topic])}
    marked = [topic["marked"] for topic in job.source()["topics"]]
    turns, said = [], []
    for _ in range(random.randint(5, 40)):
        clock += random.choice((0, 1, 300, 1_000, 5_000))
        event_time += random.randint(0, 4_000_000)
        (t, p), mark = random.choice(list(known)), random.random() < 0.2
        if random.random() < 0.8:
            at = event_time - random.choice((0, 0, 7_000_000)) + random.choice((0, 0, 90_000_000))
            (watermark.mark if mark else watermark.row)(flow.topics[t], p, at, clock)
            moves = mark == marked[t] and (mark or at <= (clock + 60_000) * 1_000)  # rules T7 and T2
            known[t, p] = [max(filter(None, (known[t, p][0], at))) if moves else known[t, p][0], clock]
        turns.append({"now": clock, "parts": [[*place, *part] for place, part in known.items()]})
        said.append(watermark.at(clock))
    return {"spec": job.source(), "turns": turns}, said


def declared(random: Random) -> hr.App:
    """Up to three streams and a table, unlike in all that moves time. The table counts if it is asked as of a time."""
    app = hr.App("times")
    first, *others = (
        app.stream(
            event(f"s{number}"),
            disorder=random.choice(("0 s", "3 s", "3 s", "20 s", "20 s", hr.marked())),
            idle=random.choice(("1 s", "5 s", "5 s", "5 s", None)),
        )
        for number in range(random.randint(1, 3))
    )
    table = app.table(event("t"), history="1 h", disorder=random.choice(("0 s", "9 s")))
    rows = first.union(*others) if others else first
    as_of = random.choice((None, "at"))
    rows.enrich(table, on="key", as_of=as_of, prefix="t_").to(app.topic("out"))
    return app


def event(topic: str) -> Any:
    @hr.event(topic=topic, key="key", time="at")
    class Event:
        key: str
        at: datetime

    return Event
