"""run, replay and explain as a person types them: the bank from Kafka to Kafka, in processes of their own."""

from __future__ import annotations

import json
import signal
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Timer
from typing import Any

import psycopg
import pytest

import headrace as hr
from bank.events import Payment
from headrace.base.settings import Settings, load
from headrace.cli.run import Watch, _until_interrupted
from headrace.log.broker import Broker
from headrace.log.codec import Codec
from headrace.log.read import read
from headrace.log.topics import ensure, widths
from headrace.model.topic import Topic
from headrace.observe.snapshot import FlowSnapshot, PartitionSnapshot, PolicyState
from headrace.ops.run import run as start
from headrace.spark.session import Spark
from headrace.stack.stack import Addresses
from tests.cli.conftest import Headrace
from tests.spark.driving import driver
from tests.spark.flowing import until, visit_on

BANK = Path(__file__).parents[2] / "bank"


@pytest.fixture
def bank(tmp_path: Path, topic: str) -> Path:
    """The bank, word for word, with topics of this test's own."""
    (tmp_path / "bank").mkdir()
    for file in (BANK / "app.py", BANK / "events.py"):
        text = file.read_text().replace('topic="payments"', f'topic="{topic}"')
        (tmp_path / "bank" / file.name).write_text(text.replace('"card-spend', f'"{topic}-spend'))
    return tmp_path


def pay(broker: Broker, topic: str, *payments: tuple[str, datetime, str]) -> None:
    """(card, time, amount), to partition 0."""
    codec, client = Codec(Payment), broker.producer({})
    for number, (card, at, amount) in enumerate(payments):
        payment = Payment(f"p{number}", card, "u1", "t1", hr.money(amount), "SE", at)
        _, value, headers, time = codec.encode(payment)
        client.produce(topic, value, card, 0, headers=headers, timestamp=time)
    assert client.flush(30) == 0


def spend(broker: Broker, topic: str) -> dict[tuple[str, str], dict[str, Any]]:
    """Results by card and window; the last revision counts. None before the driver has made the topic."""
    if topic not in widths(broker):
        return {}
    rows = [json.loads(message.value()) for message in read(broker, topic)]
    return {(row["card_id"], row["window_start"]): row for row in sorted(rows, key=lambda row: row["revision"])}


@pytest.mark.timeout(300)  # two drivers start from nothing, maybe on a busy machine
def test_run_the_bank_live_and_replay_it(
    headrace: Headrace, settings: Settings, broker: Broker, stack: Addresses, topic: str, bank: Path
) -> None:
    ensure(broker, Topic(name=topic, partitions=1))
    start = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=6)
    at = lambda minutes: start + timedelta(minutes=minutes)  # noqa: E731
    with driver(bank, settings, broker, "run", "bank", postgres=stack.postgres) as live:
        pay(
            broker,
            topic,
            ("c1", at(1), "10.00"),
            ("c1", at(2), "-1.00"),
            ("c2", at(61), "5.00"),
            ("c2", at(190), "1.00"),
        )
        live.until(lambda: ("c1", text(start)) in spend(broker, f"{topic}-spend"), every=0.3)
        pay(broker, topic, ("c1", at(3), "7.00"))  # hours too late
        until(lambda: list(read(broker, f"{topic}-spend-late")), every=0.3)
        assert live.interrupt() == 0

    talk, table = "".join(live.err), "".join(live.out)
    assert f"made topics {topic}-spend, {topic}-spend-late, {topic}.dead" in talk
    assert "bank runs; Ctrl-C stops it" in talk
    assert "stopping" in talk
    assert [line.split() for line in table.splitlines()] == [
        ["flow", "step", "in", "used", "filtered", "late", "dead", "duplicates", "held"],
        [topic, topic, "5", "5", "0", "0", "0", "0", "0"],
        [topic, "where-1", "5", "4", "1", "0", "0", "0", "0"],
        [topic, "window-1", "4", "2", "0", "1", "0", "0", "1"],
    ]
    told = spend(broker, f"{topic}-spend")
    assert len(told) == 24  # twelve hopping windows a payment
    assert told["c1", text(start)]["spent"] == "10.00"
    with psycopg.connect(stack.postgres) as database:
        stored = database.execute("select card_id, window_start, spent from card_spend").fetchall()
    assert {(card, text(at), str(spent)) for card, at, spent in stored} == {(*w, told[w]["spent"]) for w in told}
    asked = "select count(*) as times, sum(amount) as paid from lake.payments"
    said = headrace("--set", f"home={bank / 'home'}", "query", asked, "--json")
    assert said.json == [{"times": 5, "paid": "22.00"}]

    # when history is read again from the second hour on
    command = ("replay", "bank", "--from", text(at(60)), "--into", "again")
    with driver(bank, settings, broker, *command, postgres=stack.postgres) as again:
        assert again.ended() == 0
    words = "".join(again.err)
    assert f"reading from {at(60) - timedelta(minutes=70, seconds=30):%Y-%m-%d %H:%M:%S} UTC" in words
    into = f"{topic}-spend.again, postgres:card_spend_again, {topic}-spend-late.again, lake:payments_again"
    assert f"replayed into {into}" in words
    replayed = spend(broker, f"{topic}-spend.again")
    assert replayed.items() >= {window: row for window, row in told.items() if row["window_end"] > text(at(60))}.items()
    assert min(row["window_end"] for row in replayed.values()) > text(at(60))


def test_a_flow_that_stands_still_says_since_when_and_when_it_tries_again(capsys: pytest.CaptureFixture[str]) -> None:
    at = datetime(2026, 11, 15, 10, tzinfo=UTC)
    part = PartitionSnapshot(topic="payments", partition=0, offset=5, behind=1204, frontier=None, idle=False)
    away = FlowSnapshot(
        app="bank",
        version="v1",
        flow="payments",
        mode="live",
        state="restarting",
        error="PostgreSQL does not answer",
        partitions=(part,),
        since=at,
        next_try=at + timedelta(seconds=8),
    )
    watch = Watch(json=False)
    watch.take(away)
    watch.take(replace(away, next_try=at + timedelta(seconds=24)))
    told = "payments: restarting: PostgreSQL does not answer\n  since:  10:00:00 UTC; 1,204 behind; next try at 10:00:"
    assert capsys.readouterr().err == f"{told}08\n{told}24\n"


def test_a_run_says_what_it_decides_by_and_what_it_kept_out(capsys: pytest.CaptureFixture[str]) -> None:
    none = PolicyState(policy="fraud")
    stands = replace(none, seen="fraud.policy/0@4", rules_version="443d7c2f1820", shadow="fraud.policy/0@5")
    flow = FlowSnapshot(app="bank", version="v1", flow="payments", mode="realtime", state="running")
    watch = Watch(json=False)
    for policy in (none, stands, stands, replace(stands, refused=1, error="fraud.policy/0@6: no")):
        watch.take(replace(flow, policies=(policy,)))
    said = [line for line in capsys.readouterr().err.splitlines() if line != "payments: running"]
    told = "payments: decides by fraud.policy/0@4, rules 443d7c2f1820, fraud.policy/0@5 in the shadow"
    assert said == ["payments: no policy fraud is published", told, f"{told}; 1 refused: fraud.policy/0@6: no"]


def test_a_run_that_was_interrupted_did_not_end_by_itself(
    spark: Spark, broker: Broker, settings: Settings, topic: str, tmp_path: Path
) -> None:
    app = hr.App("site")
    app.stream(visit_on(topic), disorder="0 s").to(app.topic(f"{topic}-out"))
    mine = load({"home": str(tmp_path), "kafka.bootstrap": broker.bootstrap}, root=tmp_path, env={})
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job would ignore it
    with start(app, mine, spark=spark) as running:
        Timer(0.5, lambda: signal.raise_signal(signal.SIGINT)).start()
        assert not _until_interrupted(running)
    assert _until_interrupted(running)


def text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.000000Z")


def test_explain_says_what_would_run(headrace: Headrace) -> None:
    said = headrace("explain", "bank.app:bank")

    assert said.code == 0
    assert said.out.splitlines()[0] == "bank v1"
    assert "read        topic payments" in said.out
    assert "realtime    no: window-1 closes windows" in said.out

    (flow,) = headrace("explain", "bank.app:bank", "--json").json
    assert (flow["flow"], flow["modes"]["live"]) == ("payments", "yes")
    assert list(flow["state"]) == ["window-1"]


def test_run_in_real_time_is_refused_with_the_reason_and_at_once(headrace: Headrace, broker: Broker) -> None:
    said = headrace("run", "bank.app:bank", "--realtime")

    assert said.code == 1
    assert "[mode-refused]" in said.err
    assert "window-1 closes windows" in said.err
    assert "made topics" not in said.err


def test_run_without_a_broker_says_how_to_get_one(headrace: Headrace, tmp_path: Path) -> None:
    said = headrace("--set", f"home={tmp_path / 'nowhere'}", "run", "bank.app:bank")

    assert said.code == 3
    assert "headrace up" in said.err


def test_who_stands_by_forgets_nothing(headrace: Headrace) -> None:
    said = headrace("run", "shop", "--standby", "--fresh")
    assert said.code == 2
    assert "both --standby and --fresh" in said.err
