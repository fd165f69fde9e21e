"""A checkpoint is held twice: by its driver, and by the driver's JVM, which may outlive it by a moment."""

from __future__ import annotations

import fcntl
import threading
from pathlib import Path

import pytest

import headrace as hr
from headrace.base.errors import CheckpointInUse
from headrace.log.broker import Broker
from headrace.spark.checkpoint import Checkpoint
from headrace.spark.session import Spark
from tests.spark.flowing import Flowing, running, until, visit_on


@pytest.fixture
def left(spark: Spark, tmp_path: Path) -> Checkpoint:
    """Of a driver that has gone, while its JVM still runs."""
    left = Checkpoint(folder=tmp_path)
    spark.jvm.Fence.take(str(left.fence_file))
    return left


def test_who_comes_next_waits_for_the_jvm(spark: Spark, left: Checkpoint) -> None:
    held = threading.Event()

    def hold() -> None:
        left.hold().close()
        held.set()

    waiting = threading.Thread(target=hold)
    waiting.start()
    until(lambda: left.driver() is not None)  # it has the driver's lock
    assert not held.wait(0.2)
    spark.jvm.Fence.give(str(left.fence_file))
    assert held.wait(10)
    waiting.join()


def test_a_flow_that_runs_is_held_by_its_jvm(spark: Spark, broker: Broker, topic: str, tmp_path: Path) -> None:
    app = hr.App("site")
    app.stream(visit_on(topic), disorder="1 min").where("spent > 0").to(app.topic(f"{topic}-out"))
    flowing = Flowing(spark, broker, tmp_path, app)

    def free() -> bool:
        with flowing.checkpoint.fence_file.open("a") as fence:
            try:
                fcntl.lockf(fence, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return False
            return True

    with running(flowing, "1 min") as run:
        until(lambda: run.snapshot.state == "running")
        assert not free()
    assert free()


def test_a_jvm_that_does_not_end_is_said(spark: Spark, left: Checkpoint) -> None:
    with pytest.raises(CheckpointInUse, match="the JVM of a driver that has ended still runs"):
        left.hold(patience=0.1)
    spark.jvm.Fence.give(str(left.fence_file))
    left.hold().close()  # and the driver's lock was given back
