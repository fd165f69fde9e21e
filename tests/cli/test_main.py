"""The command as a whole: help is quick, errors leave by stderr with the right exit code, settings can be given."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from headrace.cli import topics
from tests.cli.conftest import Headrace

CPU_LIMIT = 0.2


def cpu_of(*arguments: str) -> float:
    """CPU seconds of one call of the command."""
    before = os.times()
    subprocess.run([sys.executable, "-m", "headrace", *arguments], check=True, capture_output=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def test_help_costs_less_than_200_ms_of_cpu() -> None:
    """Its own, in the best of ten: what else runs on the machine only ever adds to it."""
    assert any(cpu_of("--help") < CPU_LIMIT for _ in range(10))


def test_help_loads_nothing_heavy() -> None:
    heavy = "rich pyspark confluent_kafka sqlglot psycopg redis pyarrow deltalake duckdb"
    code = (
        "import sys; from headrace.cli.main import run; run(['--help']);"
        f"print(sorted(set('{heavy}'.split()) & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"


def test_help_lists_every_verb_on_one_line(headrace: Headrace) -> None:
    said = headrace("--help")
    verbs = {"up", "down", "status", "demo", "fetch", "config", "doctor", "topics", "partitions"}
    verbs |= {"send", "tail", "groups", "lag", "seek", "dead", "query"}
    shown = {line.split()[0]: line for line in said.out.splitlines() if line.startswith("  ") and line.strip()}
    assert verbs - set(shown) == set()
    assert [shown[verb] for verb in verbs if shown[verb].endswith("...")] == []  # nothing is cut off


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["tail"], ["seek", "g", "t"], ["topics", "--what"], ["partitions", "--throughput"]]
)
def test_a_command_that_makes_no_sense_exits_with_2(headrace: Headrace, arguments: list[str]) -> None:
    said = headrace(*arguments)
    assert (said.code, said.out) == (2, "")
    assert "[usage]" in said.err


def test_an_error_is_json_where_json_was_asked_for(headrace: Headrace) -> None:
    said = headrace("tail", "nowhere", "--from", "never", "--json")
    assert (said.code, said.out) == (2, "")
    assert msgspec.json.decode(said.err)["code"] == "bad-time"


def test_without_a_stack_the_environment_is_at_fault(headrace: Headrace, tmp_path: Path) -> None:
    said = headrace("--set", f"home={tmp_path / 'empty'}", "topics")
    assert (said.code, said.out) == (3, "")
    assert said.err.startswith("no kafka is running [stack-down]")
    assert "fix:   start it with `headrace up`" in said.err


def test_a_broker_of_your_own_that_is_gone_is_named(headrace: Headrace) -> None:
    said = headrace("--set", "kafka.bootstrap=127.0.0.1:1", "topics", "--json")
    assert said.code == 3
    assert msgspec.json.decode(said.err)["code"] == "broker-unreachable"


def test_what_is_said_for_experts_is_kept_in_a_file(
    headrace: Headrace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "home").mkdir()
    client = logging.getLogger("headrace.log")  # where the broker's client speaks
    monkeypatch.setattr(topics, "show_one", lambda *_, **__: client.warning("broker 1: timed out"))
    said = headrace("--set", f"home={tmp_path / 'home'}", "partitions", "--throughput", "1MB", "--json")
    client.warning("after the command")
    assert (said.code, said.err) == (0, "")
    assert (tmp_path / "home" / "logs" / "headrace.log").read_text().endswith("headrace.log broker 1: timed out\n")


def test_a_fault_of_ours_is_short_and_its_trace_is_kept(
    headrace: Headrace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HEADRACE__HOME", str(tmp_path / "home"))
    monkeypatch.setattr(topics, "show_one", lambda *_, **__: 1 / 0)  # a bug, as any could be
    said = headrace("--set", "kafka.password=geheim", "partitions", "--throughput", "1MB", "--json")
    assert (said.code, said.out) == (1, "")
    assert msgspec.json.decode(said.err)["what"].endswith("ZeroDivisionError: division by zero")
    log = (tmp_path / "home" / "logs" / "headrace.log").read_text()
    assert "headrace --set kafka.password=... partitions --throughput 1MB --json" in log
    assert "geheim" not in log
    assert "Traceback" in log


def test_config_shows_each_value_with_its_origin_and_no_secret(
    headrace: Headrace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "headrace.toml").write_text('[kafka]\nusername = "me"\npassword = "geheim"\n[apps]\na = "m:a"\n')
    monkeypatch.setenv("HEADRACE__REDIS__URL", "redis://:geheim@somewhere/0")
    said = headrace("--set", "kafka.partitions=6", "config", "--json")
    rows = {row["setting"]: (row["value"], row["origin"]) for row in said.json}
    assert rows["kafka.username"] == ("me", str(tmp_path / "headrace.toml"))
    assert rows["kafka.password"] == ("********", str(tmp_path / "headrace.toml"))
    assert rows["redis.url"] == ("********", "HEADRACE__REDIS__URL")
    assert rows["kafka.partitions"] == ("6", "flag")
    assert rows["spark.master"] == ("local[*]", "default")
    assert rows["apps.a"][0] == "m:a"
    assert "geheim" not in said.out + said.err + headrace("config").out


@pytest.mark.parametrize("given", ["kafka.partitons=6", "kafka.partitions"])
def test_a_setting_that_is_none_is_a_usage_error(headrace: Headrace, given: str) -> None:
    said = headrace("--set", given, "config")
    assert (said.code, said.out) == (2, "")
    assert "[bad-setting]" in said.err
