"""headrace serve as a process of its own, and the review queue from the shell."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

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


@pytest.fixture
def desk(headrace: Headrace, topic: str, tmp_path: Path) -> str:
    module = f"desk_{topic.replace('-', '_')}"
    (tmp_path / f"{module}.py").write_text(APP.format(topic=topic))
    (tmp_path / "headrace.toml").write_text(f'[apps]\ndesk = "{module}:desk"\n')
    return topic


def test_serve_answers_until_it_is_told_to_stop(desk: str, settings: Settings, broker: Broker, tmp_path: Path) -> None:
    key = "a key that the settings refer to"
    (tmp_path / "key").write_text(key)
    environment = os.environ | {"HEADRACE__SERVE__API_KEY": f"${{file:{tmp_path / 'key'}}}"}
    with subprocess.Popen(
        [sys.executable, "-m", "headrace", "serve", "desk", "--port", "0"],
        cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stderr is not None
        page, post, ready = (process.stderr.readline() for _ in range(3))
        assert "ready" in ready, (page, post, ready)
        address = post.split()[2].removesuffix("/decide,")
        assert f"{address}/#key={key}" in page

        answer = Caller(address).decide(payment("p-1"), X_Api_Key=key).body
        assert (answer["decision"], answer["degraded"], answer["by"]) == ("allow", True, "fallback")
        planted = Caller(address).decide(payment("p-2", country="4111 1111 1111 1111"), X_Api_Key=key)
        assert planted.code == "card-number"
        loaded = Path(f"/proc/{process.pid}/maps")
        assert not loaded.exists() or "libjvm" not in loaded.read_text()

        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        last = process.stderr.read()
        assert "stopped" in last
        kept = [file.read_text(errors="replace") for file in (settings.home / "logs").glob("*")]
        assert not any("4111 1111" in text or "41111111" in text for text in [last, *kept])
    host, port = address.removeprefix("http://").split(":")
    socket.create_server((host, int(port))).close()  # the port is free again
    assert [row["payment_id"] for row in on_log(broker, f"{desk}.payments")] == ["p-1"]


def test_serve_that_is_tied_stops_when_the_pipe_at_its_stdin_ends(desk: str, broker: Broker, tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "headrace", "--tied", "serve", "desk", "--port", "0"],
        cwd=tmp_path, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stderr is not None
        assert "ready" in [process.stderr.readline() for _ in range(3)][-1]
        process.stdin.close()
        assert process.wait(20) == 0
        assert process.stderr.read() == "stopped\n"


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

    again = headrace("reviews", "label", "desk", "p-2", "--genuine")
    assert (again.code, "[not-found]" in again.err) == (1, True)


def test_an_app_without_a_service_says_so(headrace: Headrace, orders: str) -> None:
    said = headrace("serve", "shop")
    assert said.code == 2
    assert "declare one: app.service(...)" in said.err
