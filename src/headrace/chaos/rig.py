"""The rig: real brokers, a driver and the door between them, as faults find them and as they are healed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from headrace.base.settings import Settings
from headrace.chaos.driver import Driver
from headrace.chaos.history import Commit, History
from headrace.chaos.proxy import Proxy
from headrace.chaos.stored import Stores
from headrace.chaos.traffic import Traffic
from headrace.chaos.workload import bank
from headrace.log import topics
from headrace.log.broker import Broker
from headrace.stack import guard, ports
from headrace.stack import stack as embedded
from headrace.stack.part import LOOPBACK

PARTS = ("kafka", "postgres", "redis")
_PARTITIONS = 2
_SEEN = 0.3
"""Seconds after which a commit has been seen: one that is seen earlier may have been made before the fault."""
_DISK = "1500m"
"""Of the small disk on which the driver lives, where one can be made."""


class Rig:
    """Everything of one run, in a home directory of its own. Only what it started is ever killed."""

    stores: Stores
    traffic: Traffic
    driver: Driver

    def __init__(self, home: Path, settings: Settings, history: History) -> None:
        self.home, self.history = home, history
        self._settings = settings
        self._drivers = 0
        self.proxy = Proxy()
        self.broker = Broker(bootstrap=f"{LOOPBACK}:{self.proxy.port}", partitions=_PARTITIONS)
        self.disk = _small_disk(home / "drivers")

    def start(self, *, seed: int, rate: int) -> None:
        self.up()
        topics.ensure(self.broker, *bank.topics)
        self.traffic = Traffic(self.broker, self.history, seed=seed, rate=rate)
        self.start_driver()

    # -- parts

    def up(self) -> None:
        """Starts the parts that do not run."""
        stack = self.home / "stack"
        found = embedded.up(stack, self._settings.cache, parts=PARTS, foreground=True, door=self.proxy.port)
        self.proxy.broker_port = ports.remembered(stack)["kafka"]
        self.stores = Stores(postgres=found.postgres, redis=found.redis, lake=self.home / "drivers" / "lake")

    def part(self, name: str) -> guard.Note:
        """Which process a part is."""
        note = guard.read(self.home / "stack" / name)
        assert note is not None, f"{name} was never started"
        return note

    def kill_part(self, name: str) -> None:
        """kill -9, and it is gone."""
        part = self.part(name)
        os.kill(part.pid, signal.SIGKILL)
        self.until(lambda: not part.alive, 30)

    # -- the driver

    def start_driver(self, *, state_of: Driver | None = None) -> None:
        """From the state there is; `state_of`: from a copy of another driver's."""
        if state_of is not None or self._drivers == 0:
            self._drivers += 1
        home = self.home / "drivers" / str(self._drivers)
        if state_of is not None:
            shutil.copytree(state_of.home / "state", home / "state")
        self.driver = Driver.start(home, self._environment)
        self.history.note("start", f"driver {self.driver.process.pid}")

    @property
    def _environment(self) -> dict[str, str]:
        return {
            "HEADRACE__CACHE": str(self._settings.cache),
            "HEADRACE__KAFKA__BOOTSTRAP": self.broker.bootstrap,
            "HEADRACE__KAFKA__PARTITIONS": str(_PARTITIONS),
            "HEADRACE__POSTGRES__URL": self.stores.postgres,
            "HEADRACE__REDIS__URL": self.stores.redis,
            "HEADRACE__LAKE__PATH": str(self.stores.lake),
            "HEADRACE__SPARK__DRIVER_MEMORY": "1g",
        }

    def restart_driver(self) -> None:
        """As a service manager does when it has ended, however it did."""
        self.driver.kill()
        self.start_driver()

    @property
    def state(self) -> Path:
        return self.driver.home / "state"

    # -- waiting

    def recovered(self, since: float, flow: str = "transfers") -> Commit | None:
        """The first commit of a flow that was made after this moment; transfers always have something to do."""
        return self.history.commit_after(since + _SEEN, f"{bank.name}/{bank.version}/{flow}/")

    def until(self, condition: Callable[[], Any], patience: float, every: float = 0.02) -> bool:
        """Whether the condition came true in time."""
        deadline = time.monotonic() + patience
        while not (found := condition()):
            if time.monotonic() > deadline:
                return False
            time.sleep(every)
        return bool(found)

    def close(self) -> None:
        """Ends and removes what there is, however far the start came."""
        if self._drivers:
            self.driver.kill()
        self.proxy.close()
        embedded.down(self.home / "stack")
        for words in (self.home / "drivers").glob("**/*.log"):  # the disk is gone with the run, its logs are not
            shutil.copy(words, self.home / f"{words.relative_to(self.home / 'drivers')}".replace("/", "-"))
        if self.disk:
            subprocess.run(["umount", str(self.home / "drivers")], check=False, capture_output=True)


def _small_disk(place: Path) -> bool:
    """Mounts a disk in memory there; whether this process may."""
    place.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={_DISK}", "headrace-chaos", str(place)]
    return os.geteuid() == 0 and subprocess.run(mount, check=False, capture_output=True).returncode == 0
