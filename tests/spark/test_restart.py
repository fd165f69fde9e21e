"""Kill -9 of the driver in the middle: when it has started again, the results are those of a run without trouble."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.base.clock import rfc3339
from headrace.base.settings import Settings
from headrace.log.broker import Broker
from headrace.log.produce import Producer
from headrace.log.read import read
from headrace.log.topics import ensure
from headrace.model.topic import Topic
from headrace.spark.session import Spark
from tests.spark.driving import driver, going_on

START = datetime(2020, 1, 1, 10, tzinfo=UTC)
CALM = datetime(2020, 1, 3, tzinfo=UTC)

VISIT = """
from datetime import datetime

import headrace as hr


@hr.event(topic="{topic}", key="page", time="at", id="visit")
class Visit:
    visit: str
    page: str
    at: datetime
    spent: int
"""
# A site whose visits are counted in every way that outlives a batch.
APP = """
@hr.event(topic="{topic}-pages", key="page", time="since")
class Page:
    page: str
    owner: str
    since: datetime


@hr.event(topic="{topic}-owners", key="owner", time="since")
class Owner:
    owner: str
    city: str
    since: datetime


site = hr.App("site")
visits = site.stream(Visit, disorder="3 h", idle=None)
once = visits.dedup("visit", within="6 h").named("once")
once.to(site.topic("{topic}-once", partitions=1))
minutes = visits.window(hr.hopping("10 min", every="5 min"), lateness="0 s")
minutes.agg(times=hr.count(), spent=hr.sum("spent")).named("minutes").to(site.topic("{topic}-minutes", partitions=1))
sessions = visits.window(hr.session(gap="2 min"), lateness="0 s").agg(times=hr.count()).named("sessions")
sessions.to(site.topic("{topic}-sessions", partitions=1))
rush = site.pattern("rush", key="page").first("one", once).times(3).then("more", once, where="more.spent > one.spent")
rush.within("5 min").matches.to(site.topic("{topic}-rush", partitions=1))
now, later = once.alias("now"), once.alias("later")
pairs = now.join(later, on="page", within=("1 s", "90 s"), how="left", take="now.visit as visit, later.visit as later")
pairs.to(site.topic("{topic}-pairs", partitions=1))
pages, owners = site.table(Page, name="pages"), site.table(Owner, name="owners")
owned = pages.join(owners, on="owner", how="left", take="pages.*, owners.city").named("owned")
owned.to(site.topic("{topic}-owned", partitions=1, compact=True))
cities = owned.group_by("city").agg(pages=hr.count(), newest=hr.max("page"))
cities.to(site.topic("{topic}-cities", partitions=1, compact=True))
"""
COUNTED = ("minutes", "sessions")
VIEWS = ("owned", "cities")


def write_app(folder: Path, topic: str, text: str = APP) -> Any:
    """The app as a file, and as this process sees it. The text: what comes after the event."""
    folder.mkdir(exist_ok=True)
    text = (VISIT + text).format(topic=topic)
    (folder / "visiting.py").write_text(text)
    found: dict[str, Any] = {"__name__": f"site_{topic.replace('-', '_')}"}
    exec(compile(text, "visiting.py", "exec", dont_inherit=True), found)
    return found


def visits(cls: Any, count: int) -> list[Any]:
    """Out of order by up to an hour, some twice; no two at one time, since which partition they go to is chance."""
    chance = random.Random(3)
    at = lambda n: START + timedelta(seconds=20 * n - chance.choice((0, 0, 31, 3605)))  # noqa: E731
    rows = [cls(f"v{n}", f"p{chance.randrange(5)}", at(n), n) for n in range(count)]
    return [row for row in rows for _ in range(chance.choice((1, 1, 1, 2)))]


def versions(page: Any, owner: Any, count: int) -> list[Any]:
    """Pages change hands, and owners move."""
    chance = random.Random(4)
    at = lambda n: START + timedelta(seconds=n)  # noqa: E731
    return [
        page(f"p{chance.randrange(20)}", f"o{chance.randrange(8)}", at(n))
        if chance.random() < 0.7
        else owner(f"o{chance.randrange(6)}", chance.choice(("Rome", "Oslo", "Lima")), at(n))
        for n in range(count)
    ]


def oracle(app: hr.App, rows: list[Any]) -> hr.testing.Run:
    """The reference over all rows; none is late, so the schedule does not matter (rule R4)."""
    with hr.testing.run(app, now=datetime(2026, 1, 1, tzinfo=UTC)) as t:
        t.send(*rows)
        t.end()
    return t


def standing(rows: Any) -> dict[Any, Any]:
    """Per key and window the last revision that stands."""
    found: dict[Any, Any] = {}
    for row in sorted(rows, key=lambda row: row["revision"]):
        window = (row["page"], row["window_start"], row["window_end"])
        values = {name: value for name, value in row.items() if name not in ("kind", "revision")}
        found[window] = None if row["kind"] == "retraction" else values
    return {window: values for window, values in found.items() if values is not None}


def once(broker: Broker, topic: str) -> list[dict[str, Any]]:
    """Every record; none is there twice."""
    found: dict[bytes, bytes] = {}
    for message in read(broker, topic):
        id = dict(message.headers())["hr-id"]
        assert id not in found
        found[id] = message.value()
    return [json.loads(value) for value in found.values()]


def held(broker: Broker, topic: str) -> list[str]:
    """What a reader of a view's topic holds at the end."""
    last = {message.key(): message.value() for message in read(broker, topic)}
    return in_order(json.loads(value) for value in last.values() if value is not None)


@pytest.mark.timeout(300)  # a driver starts from nothing, maybe on a busy machine
def test_after_kill_9_in_the_middle_the_results_equal_the_oracle(
    spark: Spark, settings: Settings, broker: Broker, topic: str, tmp_path: Path
) -> None:
    declared = write_app(tmp_path, topic)
    app, cls = declared["site"], declared["Visit"]
    ensure(broker, Topic(name=topic, partitions=2))
    rows = visits(cls, 600)
    tables = versions(declared["Page"], declared["Owner"], 150)
    ends = [cls(f"end{n}", f"p{n}", CALM, 0) for n in range(6)]  # time goes on in both partitions: all windows close
    for name in ("pages", "owners"):
        ensure(broker, Topic(name=f"{topic}-{name}", partitions=2, compact=True))
    third = len(rows) // 3

    def send(part: list[Any]) -> None:
        with Producer(broker, cls, acks=1, spread="round-robin") as producer:
            producer.send_many(part)
        for kind in (declared["Page"], declared["Owner"]):
            with Producer(broker, kind, acks=1) as producer:
                producer.send_many([row for row in tables[:50] if isinstance(row, kind)])
        del tables[:50]

    with driver(tmp_path, settings, broker, "run", "visiting", "--json") as first:
        send(rows[:third])
        first.until(lambda: any(s["rows"] for s in first.snapshots))

        with driver(tmp_path, settings, broker, "run", "visiting") as second:
            assert second.ended() == 3
            assert f"process {first.process.pid} holds it" in "".join(second.err)
            assert "[checkpoint-in-use]" in "".join(second.err)

        send(rows[third : 2 * third])
        first.until(lambda: sum(s["rows"] for s in first.snapshots) > third)
        first.kill()

    send(rows[2 * third :] + ends)
    t = oracle(app, rows + ends + versions(declared["Page"], declared["Owner"], 150))
    wanted = {name: standing(row.as_dict() for row in t.read(f"{topic}-{name}")) for name in COUNTED}
    closed = {name: {w for w in found if w[2] <= CALM} for name, found in wanted.items()}
    rushes = [row.as_dict() for row in t.read(f"{topic}-rush")]
    pairs = [row.as_dict() for row in t.read(f"{topic}-pairs") if not row.visit.startswith("end")]
    paired = lambda: [row for row in once(broker, f"{topic}-pairs") if not row["visit"].startswith("end")]  # noqa: E731
    views = {name: in_order(wired(row.as_dict()) for row in t.table(f"{topic}-{name}")) for name in VIEWS}
    told = lambda name: standing(map(parsed, once(broker, f"{topic}-{name}")))  # noqa: E731
    with going_on(tmp_path, spark, broker, app) as again:
        again.until(lambda: all(closed[name] <= told(name).keys() for name in COUNTED), every=0.5)
        again.until(lambda: len(once(broker, f"{topic}-rush")) >= len(rushes), every=0.5)
        again.until(lambda: len(paired()) >= len(pairs), every=0.5)
        again.until(lambda: all(held(broker, f"{topic}-{name}") == views[name] for name in VIEWS), every=0.5)

    for name in COUNTED:
        assert told(name) == {window: wanted[name][window] for window in closed[name]}
    assert len(rushes) > 50
    assert in_order(once(broker, f"{topic}-rush")) == in_order(map(wired, rushes))
    assert any(row["later"] for row in pairs)
    assert any(row["later"] is None for row in pairs)
    assert in_order(paired()) == in_order(pairs)
    assert {row["visit"] for row in once(broker, f"{topic}-once")} == {row.visit for row in rows + ends}
    assert {one.step for one in again.counts} >= {"once", *COUNTED, "owned"}
    for one in again.counts:
        assert one.missing == one.late == one.dead == 0


def in_order(rows: Any) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


def wired(row: dict[str, Any]) -> dict[str, Any]:
    return {name: rfc3339(value) if isinstance(value, datetime) else value for name, value in row.items()}


def parsed(row: dict[str, Any]) -> dict[str, Any]:
    times = {name: datetime.fromisoformat(row[name]) for name in ("window_start", "window_end")}
    return row | times
