"""up, down, status, doctor and the demo: the stack as a person meets it."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from headrace.base.settings import Settings
from headrace.log import topics
from headrace.log.broker import Broker
from headrace.model.topic import Topic
from headrace.spark.archive import LEARNS
from headrace.stack import stack as embedded
from headrace.stack.java import find_java, version
from headrace.stack.stack import Addresses
from tests.cli.conftest import Headrace

ROOT = Path(__file__).parents[2]


def test_status_and_up_show_every_part_and_no_password(headrace: Headrace, stack: Addresses) -> None:
    rows = headrace("status", "--json").json
    assert [(row["part"], row["state"], row["kind"]) for row in rows] == [
        ("kafka", "running", "embedded"),
        ("postgres", "running", "embedded"),
        ("redis", "running", "embedded"),
    ]
    again = headrace("up")  # twice is harmless
    assert again.code == 0
    assert [line.split()[:2] for line in again.out.splitlines()[1:]] == [[row["part"], "running"] for row in rows]
    password = stack.redis.split("@")[0].rpartition(":")[2]
    assert password not in again.out + again.err + msgspec.json.encode(rows).decode()


def test_a_broker_needs_some_patience(headrace: Headrace) -> None:
    said = headrace("--set", "kafka.patience=100 ms", "up")
    assert said.code != 0
    assert "kafka.patience = '100 ms' is too short" in said.err


def test_up_makes_the_topics_of_the_apps(headrace: Headrace, stack: Addresses, orders: str, broker: Broker) -> None:
    topics.delete(broker, orders)
    said = headrace("up")
    assert (said.code, f"made the topics {orders}" in said.err) == (0, True)
    assert headrace("tail", orders).code == 0


def test_a_broken_app_does_not_keep_the_stack_from_starting(
    headrace: Headrace, stack: Addresses, tmp_path: Path
) -> None:
    (tmp_path / "headrace.toml").write_text('[apps]\nnone = "no_such_module:app"\n')
    said = headrace("up")
    assert said.code == 0
    assert "the topics of none are not made" in said.err


def test_down_where_nothing_runs_says_so(headrace: Headrace, tmp_path: Path) -> None:
    empty = ("--set", f"home={tmp_path / 'empty'}")
    assert headrace(*empty, "down").err == "nothing was running\n"
    assert headrace(*empty, "down", "--json").json == {"stopped": []}
    assert headrace(*empty, "down", "--quiet").err == ""
    assert {row["state"] for row in headrace(*empty, "status", "--json").json} == {"stopped"}


def test_parts_of_your_own_are_used_and_none_is_started(
    headrace: Headrace, stack: Addresses, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADRACE__HOME", str(tmp_path / "unused"))
    monkeypatch.setenv("HEADRACE__KAFKA__BOOTSTRAP", stack.kafka)
    monkeypatch.setenv("HEADRACE__POSTGRES__URL", stack.postgres)
    monkeypatch.setenv("HEADRACE__REDIS__URL", stack.redis)
    rows = headrace("up", "--json").json
    assert [(row["part"], row["kind"], row["state"]) for row in rows] == [
        ("kafka", "own", "running"),
        ("postgres", "own", "running"),
        ("redis", "own", "running"),
    ]
    assert embedded.addresses(tmp_path / "unused") is None
    refused = headrace("up", "--connect")
    assert (refused.code, "Connect is embedded only beside the embedded Kafka" in refused.err) == (2, True)


@contextmanager
def impostor(greeting: bytes) -> Iterator[int]:
    """A server that says something else than the one that should be there."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            try:
                while True:
                    peer, _ = server.accept()
                    with peer:
                        peer.recv(64)
                        peer.sendall(greeting)
            except OSError:
                pass  # closed: the test is over

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def test_a_part_of_your_own_that_is_something_else_is_refused(headrace: Headrace, stack: Addresses) -> None:
    with impostor(b"HTTP/1.1 400 Bad Request\r\n") as port:
        for name, url in (("redis", f"redis://127.0.0.1:{port}"), ("postgres", f"postgresql://x:y@127.0.0.1:{port}/d")):
            said = headrace("--set", f"{name}.url={url}", "up", "--json")
            error = msgspec.json.decode(said.err.splitlines()[-1])
            assert (said.code, error["code"]) == (3, "part-failed")
            assert "what listens there is no" in error["why"]
            assert ":y@" not in said.err


def test_a_password_that_a_part_of_your_own_refuses_is_told_as_such(headrace: Headrace, stack: Addresses) -> None:
    for name, url in (("postgres", stack.postgres), ("redis", stack.redis)):
        scheme, _, rest = url.partition("://")
        user, place = rest.split(":")[0], rest.split("@")[1]
        wrong = ("--set", f"{name}.url={scheme}://{user}:not-it@{place}")
        said = headrace(*wrong, "up", "--json")
        error = msgspec.json.decode(said.err.splitlines()[-1])
        assert (said.code, error["code"]) == (3, "part-failed")
        assert error["what"].startswith(f"your own {name} does not let us in at 127.0.0.1:")
        assert "password" in error["why"]
        assert f"correct {name}.url" in error["fix"]
        assert "not-it" not in said.err
        (row,) = [row for row in headrace(*wrong, "status", "--json").json if row["part"] == name]
        assert row["state"] == "refused"
        (finding,) = [row for row in headrace(*wrong, "doctor", "--no-spark", "--json").json if name in row["what"]]
        assert (finding["severity"], "does not let us in" in finding["what"]) == ("error", True)


@pytest.mark.parametrize("url", ["postgresql://u:se cret@h:x/d", "se cret", "redis://:se#cret@h"])
def test_a_url_that_is_none_is_told_without_repeating_it(headrace: Headrace, stack: Addresses, url: str) -> None:
    for name in ("postgres", "redis"):
        said = headrace("--set", f"{name}.url={url}", "up")
        assert said.code == 3
        assert "cret" not in said.err


def test_doctor_finds_all_well_where_all_is_well(headrace: Headrace, stack: Addresses, orders: str) -> None:
    said = headrace("doctor", "--no-spark", "--json")
    mine = [row for row in said.json if row["check"] != "topics"]  # other tests make odd ones
    assert said.code == 0
    assert {row["check"] for row in said.json} == {"python", "java", "jars", "disk", "apps", "stack", "topics"}
    assert [row for row in mine if row["severity"] not in ("fine", "note")] == []
    assert "stack   kafka answers at" in headrace("doctor", "--no-spark").out


def test_doctor_runs_a_query_through_spark_also_on_the_systems_java(
    headrace: Headrace, stack: Addresses, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADRACE_JAVA", "system")  # tests/spark runs on the wheel's; without one here, so does this
    command = [sys.executable, "-m", "headrace", "doctor", "--json"]  # a Spark of its own: one per process
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = {row["check"]: row for row in msgspec.json.decode(done.stdout)}
    assert found["java"]["what"].endswith(f" at {find_java()}")
    assert found["spark"]["severity"] == "fine"
    assert found["spark"]["what"].startswith("Spark answered a query through a Python worker")
    learns = (version(find_java()) or 0) >= LEARNS
    assert found["rehearsal"]["severity"] == "fine" if learns else "learns nothing" in found["rehearsal"]["why"]


def test_doctor_warns_of_topics_that_others_made_with_other_rules(
    headrace: Headrace, stack: Addresses, broker: Broker, topic: str
) -> None:
    limits = {"retention.ms": "604800000", "message.timestamp.after.max.ms": "3600000"}
    topics.ensure(broker, Topic(name=topic, partitions=1), extra=limits)
    found = [row for row in headrace("doctor", "--no-spark", "--json").json if topic in row["what"]]
    assert [(row["severity"], row["what"]) for row in found] == [
        ("warning", f"topic {topic} refuses records dated in the future"),
        ("warning", f"topic {topic} forgets records after 7 d"),
    ]
    assert all(row["why"] and row["fix"] for row in found)
    topics.delete(broker, topic)


def test_doctor_tells_what_does_not_work_and_exits_with_3(headrace: Headrace, tmp_path: Path) -> None:
    (tmp_path / "headrace.toml").write_text('[apps]\nnone = "no_such_module:app"\n')
    said = headrace("--set", "kafka.bootstrap=127.0.0.1:1", "doctor", "--no-spark", "--json")
    errors = {row["check"]: row for row in said.json if row["severity"] == "error"}
    assert said.code == 3
    assert set(errors) == {"apps", "stack"}
    assert errors["stack"]["what"] == "your own kafka does not answer at 127.0.0.1:1"
    assert errors["stack"]["fix"].startswith("start it, or correct the kafka.* settings")


def test_doctor_knows_a_part_that_was_killed(headrace: Headrace, settings: Settings, tmp_path: Path) -> None:
    home = tmp_path / "home"
    embedded.up(home, settings.cache, parts=("redis",), foreground=True)
    try:
        (redis,) = [part for part in embedded.status(home) if part.name == "redis"]
        assert redis.pid is not None
        subprocess.run(["kill", "-9", str(redis.pid)], check=True)
        said = headrace("--set", f"home={home}", "doctor", "--no-spark", "--json")
        (dead,) = [row for row in said.json if row["severity"] == "error"]
        assert dead["what"] == "redis ended without being asked to"
        assert "headrace up" in dead["fix"]
    finally:
        embedded.down(home)


def test_the_demo_needs_an_app_and_made_up_events(headrace: Headrace, orders: str, tmp_path: Path) -> None:
    said = headrace("demo")
    assert (said.code, "shop has no made-up events" in said.err) == (2, True)
    (tmp_path / "headrace.toml").write_text("")
    said = headrace("demo")
    assert (said.code, "there is no app to show" in said.err) == (2, True)
    assert headrace("demo", "--rate", "0").code == 2


def test_the_demo_sends_made_up_payments_and_ctrl_c_leaves_nothing_behind(tmp_path: Path, settings: Settings) -> None:
    home = tmp_path / "home"
    headrace = [sys.executable, "-m", "headrace", "--set", f"home={home}"]
    demo_command = [*headrace, "demo", "--app", "bank", "--rate", "20"]
    with subprocess.Popen(demo_command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as demo:
        try:
            assert demo.stdout is not None
            shown = [demo.stdout.readline() for _ in range(7)]
            assert all(shown), demo.communicate()  # it ended too soon, and says why
            assert [line.split()[0] for line in shown[:4]] == ["part", "kafka", "postgres", "redis"]
            follow = [*headrace, "tail", "payments", "--follow", "--json"]
            with subprocess.Popen(follow, cwd=ROOT, stdout=subprocess.PIPE, text=True) as tail:
                assert tail.stdout is not None
                seen = [msgspec.json.decode(tail.stdout.readline()) for _ in range(5)]
                tail.kill()
            demo.send_signal(signal.SIGINT)
            _, talk = demo.communicate(timeout=30)
        finally:
            demo.kill()
    assert demo.returncode == 0, talk
    assert {found["type"] for found in seen} == {"Payment"}
    assert "tail payments --follow " in talk
    assert embedded.addresses(home) is None
