"""The same pipeline at three guarantees, under the same kill: one loses, one repeats, one does neither."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from datetime import UTC, datetime, timedelta

import headrace as hr


@hr.event(topic="guarantees-payments", key="card", time="at", id="payment")
class Payment:
    """A payment by card."""

    payment: str
    card: str
    at: datetime


app = hr.App("guarantees")
payments = app.stream(Payment, disorder="0 s")
for guarantee in ("at-most-once", "at-least-once", "exactly-once"):
    payments.to(app.topic(f"guarantees-{guarantee}", partitions=1), guarantee=guarantee)

SENT = tuple(f"p{n}" for n in range(1, 9))


def demo() -> None:
    """Eight payments. The driver dies while it writes them, as by kill -9, and is started again."""
    with tempfile.TemporaryDirectory() as home:
        os.environ["HEADRACE__HOME"] = home
        if "HEADRACE__KAFKA__BOOTSTRAP" not in os.environ:  # else a Kafka of your own is used
            headrace("up")
        try:
            with hr.connect(app) as client:
                start = datetime(2026, 1, 1, 10, tzinfo=UTC)
                client.send(*(Payment(id, "card-1", start + timedelta(seconds=n)) for n, id in enumerate(SENT)))
            run_and_die()
            run()
            for guarantee in ("at-most-once", "at-least-once", "exactly-once"):
                show(guarantee, seen(guarantee))
        finally:
            headrace("down")


def run_and_die() -> None:
    """A driver whose JVM halts after the tenth record of its first batch: of three copies of each payment."""
    headrace("run", __file__, env=os.environ | {"JAVA_TOOL_OPTIONS": "-Dheadrace.failpoint=after-rows@0"})


def run() -> None:
    """A driver that is stopped when it has done a batch."""
    with subprocess.Popen(command("run", __file__, "--json"), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as driver:
        assert driver.stdout is not None
        for line in driver.stdout:
            if json.loads(line)["rows"]:
                break
        driver.send_signal(signal.SIGINT)
        driver.communicate()


def seen(guarantee: str) -> Counter[str]:
    """How often each payment is in the topic of this guarantee."""
    lines = headrace("tail", f"guarantees-{guarantee}", "--from", "earliest", "--json").splitlines()
    return Counter(json.loads(line)["value"]["payment"] for line in lines)


def show(guarantee: str, times: Counter[str]) -> None:
    lost = sum(times[id] == 0 for id in SENT)
    again = sum(times[id] > 1 for id in SENT)
    print(f"{guarantee}: {lost} lost, {again} came again")
    print("payment    " + "  ".join(SENT))
    print("times seen " + "  ".join(f"{times[id]:>{len(id)}}" for id in SENT))
    print()


def headrace(*words: str, env: dict[str, str] | None = None) -> str:
    return subprocess.run(command(*words), check=False, capture_output=True, text=True, env=env).stdout


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "headrace", *words]


if __name__ == "__main__":
    demo()
