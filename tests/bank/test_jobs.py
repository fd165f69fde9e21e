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


@pytest.mark.usefixtures("desk")
def test_a_job_that_ends_again_and_again_is_given_up_where_another_does_the_same(
    broker: Broker, topic: str, tmp_path: Path
) -> None:
    topics.ensure(broker, Topic(name=topic, partitions=1))
    words, told = ("tail", topic, "--follow"), list[str]()
    both = [jobs.Job(name, words, tmp_path / f"{name}.log") for name in ("first", "second")]
    first, second = both

    def kill(job: jobs.Job) -> None:
        job.process.kill()
        job.process.wait()
        jobs.keep(both, told.append)

    for _ in range(jobs.OFTEN + 1):
        kill(first)
    assert both == [second]
    assert [line.split(";")[0] for line in told] == [
        *["first had ended, and is started again"] * jobs.OFTEN,
        "goes on without first: first has ended 4 times in 300 s",
    ]
    for _ in range(jobs.OFTEN):
        kill(second)
    with pytest.raises(hr.HeadraceError, match="second has ended"):
        kill(second)
    second.stop()


@pytest.mark.usefixtures("desk")
def test_all_are_told_to_stop_before_any_is_waited_for(
    broker: Broker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics.ensure(broker, Topic(name=topic, partitions=1))
    three = [jobs.Job(name, ("tail", topic, "--follow"), tmp_path / f"{name}.log") for name in "abc"]
    calls, wait, interrupt = list[str](), jobs.Job.wait, jobs.Job.interrupt

    def interrupted(job: jobs.Job) -> None:
        calls.append("interrupt")
        interrupt(job)

    def waited(job: jobs.Job) -> None:
        calls.append("wait")
        wait(job)
        if calls.count("wait") == 1:
            raise KeyboardInterrupt  # somebody is impatient

    monkeypatch.setattr(jobs.Job, "interrupt", interrupted)
    monkeypatch.setattr(jobs.Job, "wait", waited)
    with pytest.raises(KeyboardInterrupt):
        jobs.stop(three)
    assert calls == ["interrupt"] * 3 + ["wait"] * 3
    assert not any(job.runs for job in three)


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
