"""Yielding: the weight of a session is lowered and raised again, and only that of one's own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from headrace.base.patience import yield_by
from tests.base.weighing import weight

TOLD = "from headrace.base.patience import patience; print(patience())"


@pytest.fixture
def session() -> Iterator[int]:
    """The process that leads a session of its own."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, start_new_session=True) as process:
        if weight(process.pid) is None:
            process.kill()
            pytest.skip("sessions are not weighed here")
        yield process.pid
        process.kill()


def test_a_session_yields_and_yields_no_more(session: int) -> None:
    for much in (15, 5, 0):
        yield_by(session, much)
        assert weight(session) == much


def test_only_who_leads_a_session_yields() -> None:
    # given a session of two; not that of the tests: where nobody began one, it is not weighed
    command = ["sh", "-c", "sleep 600 & echo $!; wait"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as leader:
        assert leader.stdout is not None
        follower = int(leader.stdout.readline())
        usual = weight(leader.pid)
        yield_by(follower, 15)
        assert weight(leader.pid) == usual
        os.killpg(leader.pid, signal.SIGKILL)
    yield_by(leader.pid, 15)  # it is gone: nothing to be done


def test_how_much_one_yields_is_told_by_the_process_or_the_session() -> None:
    def told(prefix: list[str]) -> int:
        return int(subprocess.check_output([*prefix, sys.executable, "-c", TOLD], start_new_session=True))

    assert told(["nice", "-n", "7"]) == min(19, told([]) + 7)


def test_how_much_a_session_yields_is_known_to_who_leads_it(session: int) -> None:
    heavier = ["sh", "-c", 'echo 9 > /proc/$$/autogroup; exec "$@"', "sh"]
    told = subprocess.check_output([*heavier, sys.executable, "-c", TOLD], start_new_session=True)
    assert int(told) == 9
