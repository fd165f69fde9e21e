"""Watching a run: commits as they come, and the sum of all balances in every read."""

from __future__ import annotations

import json
import threading
from typing import Any

import psycopg

from headrace.base.errors import LogError
from headrace.chaos.rig import Rig
from headrace.chaos.workload import bank
from headrace.log.follow import Follower
from headrace.spark.commits import commits_topic

_COMMITS = commits_topic(bank.name).name
_BALANCES = "chaos-balances"
_EVERY = 0.1
_READ_EVERY = 10
"""Looks at the topic of commits for each read of the balances."""


class Watch:
    """On a thread of its own. A broker that is down is asked again; no record is skipped or taken twice for that."""

    def __init__(self, rig: Rig) -> None:
        self._rig, self._history = rig, rig.history
        self._stop = threading.Event()
        self._followers: dict[str, Follower] = {}
        self.sums: list[int] = []
        """The sum of all balances, as each read of the topic and of PostgreSQL found it."""
        self._standing: dict[str, int] = {}
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Looks once more, and ends."""
        self._stop.set()
        self._thread.join()
        self._look_at_commits()
        self._read_balances()
        for follower in self._followers.values():
            follower.close()

    def _run(self) -> None:
        turn = 0
        while not self._stop.wait(_EVERY):
            turn += 1
            try:
                self._look_at_commits()
                if turn % _READ_EVERY == 0:
                    self._read_balances()
            except (LogError, psycopg.Error) as broken:
                self._history.note("read", str(broken).splitlines()[0], "failed")

    def _look_at_commits(self) -> None:
        for message in self._news(_COMMITS):
            key = message.key().decode()
            if key.count("/") == 3:  # app/version/flow/query: a batch; shorter ones say who has a flow
                self._history.committed(key, json.loads(message.value())["batch"])

    def _read_balances(self) -> None:
        for message in self._news(_BALANCES):
            row = json.loads(message.value())
            self._standing[row["account"]] = row["cents"]
        self.sums.append(sum(self._standing.values()))
        self.sums.append(self._rig.stores.sum())

    def _news(self, topic: str) -> list[Any]:
        if topic not in self._followers:
            self._followers[topic] = Follower(self._rig.broker, topic)
        return self._followers[topic].refresh()
