"""The bank's processes: waited for by what they say, and their last words told when they end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import headrace as hr
from bank import jobs
from headrace.base.settings import Settings
from headrace.log import topics
from headrace.log.broker import Broker
from headrace.model.topic import Topic
from headrace.stack import guard
from tests.spark.driving import jvm_of
from tests.stack.waiting import until

ROOT = Path(__file__).parents[2]

PARENT = """
import sys
from pathlib import Path
from bank import jobs
import psutil
job = jobs.Job("flow", ("run", "flow"), Path("flow.log"), yields=True)
job.until(": running")
(jvm, *_) = psutil.Process(job.process.pid).children()
weight = Path(f"/proc/{jvm.pid}/autogroup")
print(job.process.pid, weight.read_text().split()[-1] if weight.exists() else "10", flush=True)
sys.stdin.read()
"""

FLOW = """
from datetime import datetime
import headrace as hr

@hr.event(topic="{topic}", key="id", time="at", id="id")
class Tick:
    id: str
    at: datetime

flow = hr.App("flow")
flow.stream(Tick, disorder="1 s").to(flow.topic("{topic}-out"))
"""


def test_a_job_is_known_by_what_it_says_and_its_end_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE__HOME", str(tmp_path / "home"))
    job = jobs.Job("settings", ("config", "--json"), tmp_path / "settings.log")
    assert str(tmp_path / "home") in job.until(str(tmp_path / "home"))
    job.process.wait()
    with pytest.raises(hr.HeadraceError, match="settings has ended"):
        job.check()
    with pytest.raises(hr.HeadraceError, match="has ended"):
        job.until("what it never says")
    job.stop()  # twice is harmless


def test_a_job_that_was_killed_is_started_again_until_it_happens_too_often(tmp_path: Path) -> None:
    job = jobs.Job("explain", ("explain", "bank"), tmp_path / "explain.log", yields=True)
    assert not job.keep()
    for _ in range(jobs.OFTEN):
        first = job.process
        first.kill()
        first.wait()
        assert job.keep()
        assert job.process.pid != first.pid
        assert os.getpriority(os.PRIO_PROCESS, job.process.pid) > 0
    job.process.kill()
    job.process.wait()
    with pytest.raises(hr.HeadraceError, match="has ended"):
        job.keep()
    job.stop()


def test_a_job_yields_and_ends_in_order_when_whoever_started_it_is_killed(
    broker: Broker, settings: Settings, topic: str, tmp_path: Path
) -> None:
    # given a flow with its JVM, started as `bank run` does
    topics.ensure(broker, Topic(name=topic, partitions=1))
    (tmp_path / "tied_flow.py").write_text(FLOW.format(topic=topic))
    (tmp_path / "headrace.toml").write_text('[apps]\nflow = "tied_flow:flow"\n')
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]),
        "HEADRACE__HOME": str(tmp_path / "home"),
        "HEADRACE__CACHE": str(settings.cache),
        "HEADRACE__KAFKA__BOOTSTRAP": broker.bootstrap,
        "HEADRACE__SPARK__DRIVER_MEMORY": "1g",
    }
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], cwd=tmp_path, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout is not None
        pid, patience = parent.stdout.readline().decode().split()
        flow = int(pid)
        assert patience == "10"
        jvm = int(jvm_of(flow))
        both = [guard.Note(pid, guard.birth(pid) or "", "", signal.SIGTERM) for pid in (flow, jvm)]
        # when the parent is killed
        parent.kill()
        parent.wait()
        # then both end, and the flow has stopped as by Ctrl-C
        try:
            until(lambda: not any(one.alive for one in both), seconds=jobs.GRACE)
        finally:
            guard.end(both)
    assert (tmp_path / "flow.log").read_text().splitlines()[-2:] == ["stopping", f"{topic}: stopped"]
