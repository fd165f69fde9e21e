"""`make run` on a bare home, as the README has it: the bank opens, answers what it says one could ask, goes on when a
twin is killed, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import pytest

import headrace as hr
from bank.record import record
from headrace.base.settings import Settings, load
from headrace.stack import stack as embedded
from tests.spark.driving import Driver, jvm_of
from tests.spark.flowing import until

ROOT = Path(__file__).parents[2]
PATIENT = 240.0
PAST = 300


@pytest.mark.timeout(600)  # three drivers start, beside whatever else is tested
def test_the_bank_opens_answers_loses_a_twin_and_leaves_nothing(settings: Settings, tmp_path: Path) -> None:
    environment = os.environ | {
        "HEADRACE__HOME": str(tmp_path / "home"),
        "HEADRACE__CACHE": str(settings.cache),
        "HEADRACE__SERVE__PORT": "0",
        "HEADRACE__SPARK__DRIVER_MEMORY": "1g",
    }
    command = [sys.executable, "-m", "bank", "run", "--rate", "5", "--past", str(PAST), "--no-standby"]
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=ROOT, env=environment, text=True, **both) as process:
        bank = Driver(process)
        said = bank.err
        try:
            # given the bank, open
            until(lambda: process.poll() is not None or any("Logs:" in line for line in said), within=PATIENT)
            assert process.poll() is None, "".join(said)
            welcome = "".join(said)
            assert f"{PAST} of {PAST}\n" in welcome  # payments of the days before, taken in
            address, payment = asked(welcome)
            this = f"payment_id = '{payment['payment_id']}'"
            key = (tmp_path / "home" / "serve" / "api-key").read_text()
            request = urllib.request.Request(
                f"{address}/decide",
                json.dumps(payment).encode(),
                {"X-Api-Key": key, "Content-Type": "application/json"},
            )
            # when the payment is asked for that it says one could
            with urllib.request.urlopen(request) as answer:
                told = json.load(answer)
            # On a busy machine it may be degraded, and know nothing yet of a card that has paid for a few seconds.
            assert told["degraded"] or told["decision"] == "decline", told

            # then it is recorded once, with the reason; and so are those of the people who pay meanwhile
            home = load({"home": str(tmp_path / "home")}, root=ROOT, env={})
            with hr.connect(record, home) as client:
                until(lambda: len(rows(client, "true")) > PAST + 50 and rows(client, this), within=PATIENT, every=0.5)
                (kept,) = rows(client, this)
            assert kept["decision"] == "decline"
            assert "nobody travels that fast" in kept["reasons"]
            with urllib.request.urlopen(f"{address}/") as page:
                assert b"page.js" in page.read()
            # when somebody opens it once more, then that is refused, and nothing is touched
            second = subprocess.run(command, cwd=ROOT, env=environment, text=True, check=False, **both)
            assert (second.returncode, second.stdout) == (1, "")
            assert second.stderr.startswith(f"a bank runs here already, process {process.pid} [failed]\n")
            # when the JVM of a twin is killed
            theirs = psutil.Process(process.pid).children(recursive=True)
            twin = next(one for one in theirs if {"run", "decide"} <= set(one.cmdline()))
            os.kill(int(jvm_of(twin.pid)), signal.SIGKILL)
            # then the other decides, it is started again, and what is recorded is recorded once
            with hr.connect(record, home) as client:
                before = len(rows(client, "true"))
                until(lambda: len(rows(client, "true")) > before + 20, within=PATIENT, every=0.5)
                ids = [row["payment_id"] for row in rows(client, "true")]
                assert len(ids) == len(set(ids))
            until(lambda: any("had ended, and is started again" in line for line in said), within=PATIENT)
            # when somebody presses Ctrl-C
            theirs = psutil.Process(process.pid).children(recursive=True)
            assert bank.interrupt() == 0
            # then all has ended
            assert not [one for one in theirs if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]
            assert {part.state for part in embedded.status(home.home)} == {"stopped"}
            assert said[-1].startswith("stopped; the data stays")
        finally:
            if process.poll() is None:
                bank.interrupt()


def rows(client: Any, where: str) -> list[dict[str, Any]]:
    """Of the lake; none before the first batch."""
    try:
        return client.query(f"select * from lake.decisions where {where}")  # type: ignore[no-any-return]
    except hr.HeadraceError:
        return []


def asked(welcome: str) -> tuple[str, dict[str, Any]]:
    """The address and the payment of the `curl` that it prints; what the shell would put in is put in here."""
    found = re.search(r"curl -s (\S+)/decide .*? -d '(.*?)'\n", welcome, re.DOTALL)
    assert found, welcome
    now = datetime.now(UTC)
    body = found[2].replace("'$(date +%s)'", f"{now:%s}").replace("'$(date -u +%FT%TZ)'", f"{now:%FT%TZ}")
    return found[1], json.loads(body)
