"""headrace serve as a process of its own, and the review queue from the shell."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from headrace.base.clock import SystemClock, rfc3339
from headrace.base.settings import Settings
from headrace.log import topics
from headrace.log.broker import Broker
from headrace.model.topic import Topic
from tests.cli.conftest import Headrace
from tests.serve.asking import Caller, on_log, payment, write

APP = '''
"""A desk that answers about payments."""

from datetime import datetime

import headrace as hr


@hr.event(topic="{topic}.payments", key="card_id", time="at", id="payment_id")
class Payment:
    payment_id: str
    card_id: str
    amount: hr.Money
    country: str
    lat: float
    pin_ok: bool
    at: datetime


@hr.event(topic="{topic}.labels", key="payment_id", time="at", id="payment_id")
class Label:
    payment_id: str
    amount: hr.Money
    fraud: int
    by: str
    at: datetime


def by_rules(client):
    assert client.app is desk
    return lambda payment: {{"decision": "allow", "reasons": ["by rules"]}}


desk = hr.App("desk")
desk.service(
    "decide",
    ask=Payment,
    answer=desk.topic("{topic}.raw"),
    default={{"decision": "review"}},
    fallback=by_rules,
    spare="5 s",
    alerts=desk.topic("{topic}.alerts"),
    label=Label,
)
'''

CARDS = """

@hr.event(topic="{topic}.cards", key="card_id", time="at")
class Card:
    card_id: str
    at: datetime


desk = hr.App("desk")
desk.service(
    "decide",
    ask=Payment,
    answer=desk.topic("{topic}.raw"),
    default={{"decision": "review"}},
    known={{"card_id": desk.table(Card)}},
)
"""


AND_SAY_WHAT_IS_LOADED = """
import atexit, runpy, sys
atexit.register(lambda: print(*sys.modules))
runpy.run_module("headrace", run_name="__main__", alter_sys=True)
"""

AND_NEVER_COME_TO_THE_END = """
import runpy
from headrace.serve import known

class Endless(known.Arrivals):
    def _pass(self, batch):
        pass

known.Arrivals = Endless
runpy.run_module("headrace", run_name="__main__", alter_sys=True)
"""


@contextmanager
def ended(process: subprocess.Popen[str]) -> Iterator[None]:
    """Whatever becomes of the test, the service does not outlive it, and nobody waits for it."""
    try:
        yield
    finally:
        process.kill()


@pytest.fixture
def desk(headrace: Headrace, topic: str, tmp_path: Path) -> str:
    write_app(tmp_path, topic, APP)
    return topic


@pytest.fixture
def knowing(headrace: Headrace, broker: Broker, topic: str, tmp_path: Path) -> str:
    """The same desk, which knows cards."""
    write_app(tmp_path, topic, APP + CARDS)
    return topic


def write_app(place: Path, topic: str, text: str) -> None:
    module = f"desk_{topic.replace('-', '_')}"
    (place / f"{module}.py").write_text(text.format(topic=topic))
    (place / "headrace.toml").write_text(f'[apps]\ndesk = "{module}:desk"\n')


def test_serve_answers_until_it_is_told_to_stop(desk: str, settings: Settings, broker: Broker, tmp_path: Path) -> None:
    key = "a key that the settings refer to"
    (tmp_path / "key").write_text(key)
    environment = os.environ | {"HEADRACE__SERVE__API_KEY": f"${{file:{tmp_path / 'key'}}}"}
    with subprocess.Popen(
        [sys.executable, "-c", AND_SAY_WHAT_IS_LOADED, "serve", "desk", "--port", "0"],
        cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process, ended(process):  # fmt: skip
        assert process.stderr is not None
        page, post, ready = (process.stderr.readline() for _ in range(3))
        assert "ready" in ready, (page, post, ready)
        address = post.split()[2].removesuffix("/decide,")
        assert f"{address}/#key={key}" in page

        answer = Caller(address).decide(payment("p-1"), X_Api_Key=key).body
        assert (answer["decision"], answer["degraded"], answer["by"]) == ("allow", True, "fallback")
        planted = Caller(address).decide(payment("p-2", country="4111 1111 1111 1111"), X_Api_Key=key)
        assert planted.code == "card-number"
        assert psutil.Process(process.pid).children(recursive=True) == []  # Spark's JVM would be one

        process.send_signal(signal.SIGTERM)
        said, last = process.communicate(timeout=20)
        assert process.returncode == 0
        assert "stopped" in last
        loaded = set(said.split())
        assert "headrace.serve.desk" in loaded
        assert not loaded & {"pyspark", "py4j", "deltalake", "duckdb", "pyarrow"}
        kept = [file.read_text(errors="replace") for file in (settings.home / "logs").glob("*")]
        assert not any("4111 1111" in text or "41111111" in text for text in [last, *kept])
    host, port = address.removeprefix("http://").split(":")
    socket.create_server((host, int(port))).close()  # the port is free again
    assert [row["payment_id"] for row in on_log(broker, f"{desk}.payments")] == ["p-1"]


def test_serve_that_is_tied_stops_when_the_pipe_at_its_stdin_ends(desk: str, broker: Broker, tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "headrace", "--tied", "serve", "desk", "--port", "0"],
        cwd=tmp_path, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process, ended(process):  # fmt: skip
        assert process.stdin is not None
        assert process.stderr is not None
        assert "ready" in [process.stderr.readline() for _ in range(3)][-1]
        process.stdin.close()
        assert process.wait(20) == 0
        assert process.stderr.read() == "stopped\n"


def test_serve_says_how_many_keys_it_knows(knowing: str, headrace: Headrace, tmp_path: Path) -> None:
    def said() -> list[str]:
        with subprocess.Popen(
            [sys.executable, "-m", "headrace", "serve", "desk", "--port", "0"],
            cwd=tmp_path, stderr=subprocess.PIPE, text=True,
        ) as process, ended(process):  # fmt: skip
            assert process.stderr is not None
            lines = [process.stderr.readline() for _ in range(4)]
            process.send_signal(signal.SIGINT)
            assert process.wait(20) == 0
            return lines

    _, _, none, ready = said()
    write = f"headrace send {knowing}.cards card_id=... ..."
    assert none == f"known      {knowing}.cards: 0 keys; events that name one are refused: {write}\n"
    assert ready.startswith("ready")
    assert headrace("send", f"{knowing}.cards", "card_id=c1", "at=2026-11-03T15:00:00Z").code == 0
    assert f"known      {knowing}.cards: 1 key\n" in said()


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_serve_stops_while_it_still_reads_what_is_known(
    knowing: str, headrace: Headrace, tmp_path: Path, signum: signal.Signals
) -> None:
    assert headrace("send", f"{knowing}.cards", "card_id=c1", "at=2026-11-03T15:00:00Z").code == 0
    with subprocess.Popen(
        [sys.executable, "-c", AND_NEVER_COME_TO_THE_END, "serve", "desk", "--port", "0"],
        cwd=tmp_path, stderr=subprocess.PIPE, text=True,
    ) as process, ended(process):  # fmt: skip
        assert process.stderr is not None
        *_, waits = (process.stderr.readline() for _ in range(3))
        assert waits == "reading the keys that are known back from the log; nobody is answered before\n"
        process.send_signal(signum)
        assert process.wait(20) == 130
        assert process.stderr.read() == ""


def test_what_is_tied_needs_a_pipe() -> None:
    command = [sys.executable, "-m", "headrace", "--tied", "config"]
    said = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert said.returncode == 2
    assert said.stderr.startswith("--tied without a pipe as stdin [usage]")


def test_reviews_are_listed_snoozed_and_labelled(headrace: Headrace, desk: str, broker: Broker) -> None:
    names = ("alerts", "labels", "payments.decide.notes")
    topics.ensure(broker, *(Topic(name=f"{desk}.{name}", partitions=1) for name in names))
    at = rfc3339(SystemClock().now())
    rows = [
        {"payment_id": f"p-{n}", "amount": "600.00", "decision": "review", "reasons": ["new"], "at": at} for n in (1, 2)
    ]
    write(broker, f"{desk}.alerts", *rows)

    assert [row["payment_id"] for row in headrace("reviews", "list", "desk", "--json").json] == ["p-1", "p-2"]
    assert "new" in headrace("reviews", "list", "desk").out
    assert headrace("reviews", "snooze", "desk", "p-1", "--for", "2 h").code == 0
    assert headrace("reviews", "label", "desk", "p-2", "--fraud", "--by", "ann").code == 0
    assert [row["payment_id"] for row in headrace("reviews", "list", "desk", "--snoozed", "--json").json] == ["p-1"]
    assert [(row["fraud"], row["by"]) for row in on_log(broker, f"{desk}.labels")] == [(1, "ann")]

    assert headrace("reviews", "label", "desk", "p-2", "--genuine", "--by", "bob").code == 0
    said = headrace("reviews", "list", "desk", "--labelled", "--json").json
    assert [(row["payment_id"], row["fraud"], row["by"]) for row in said] == [("p-2", False, "bob")]
    assert "bob" in headrace("reviews", "list", "desk", "--labelled").out
    assert [(row["fraud"], row["by"]) for row in on_log(broker, f"{desk}.labels")] == [(1, "ann"), (0, "bob")]

    assert headrace("reviews", "list", "desk", "--labelled", "--snoozed").code == 2
    never = headrace("reviews", "label", "desk", "p-3", "--genuine")
    assert (never.code, "[not-found]" in never.err) == (1, True)


def test_an_app_without_a_service_says_so(headrace: Headrace, orders: str) -> None:
    said = headrace("serve", "shop")
    assert said.code == 2
    assert "declare one: app.service(...)" in said.err
