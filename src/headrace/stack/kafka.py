"""Kafka 4.3 without ZooKeeper: one broker that is its own controller, or three of them, replicated."""

from __future__ import annotations

import base64
import shutil
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import ClassVar

from headrace.base.duration import millis
from headrace.base.errors import BadSetting
from headrace.stack import failure, jvm, kafka_wire
from headrace.stack.jvm import Fetch
from headrace.stack.part import LOOPBACK, Part, Run

_HEAP = "256m"
PATIENCE = timedelta(seconds=2.5)
"""How long a lone broker may be silent before it is given up, by itself: after a kill it can come back no sooner, and
on a machine so busy that it is silent for longer, it takes all down with it for half a minute."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """What is fixed when the data directories are made: the cluster's id and its number of brokers."""

    id: str
    brokers: int

    @property
    def names(self) -> list[str]:
        return ["kafka"] if self.brokers == 1 else [f"kafka-{node}" for node in range(1, self.brokers + 1)]


def known(home: Path) -> Cluster | None:
    """The cluster of this home directory, as its data directories tell; None if there are none yet."""
    for brokers in (1, 3):
        made = [data for name in Cluster("", brokers).names if (data := home / name / "data").exists()]
        if made:
            return Cluster(next((id for data in made if (id := _identity(data)[0])), ""), brokers)
    return None


def cluster(home: Path, brokers: int) -> Cluster:
    """The cluster of this home directory, or a new one if there is none yet."""
    if brokers not in (1, 3):
        raise BadSetting(
            f"an embedded Kafka of {brokers} brokers is not offered",
            why="one broker is the least, three are the least that can lose one",
            fix="brokers = 1 or 3",
        )
    found = known(home) or Cluster(_new_id(), brokers)
    if found.brokers != brokers:
        raise BadSetting(
            f"the Kafka in {home} has {found.brokers} broker(s), not {brokers}",
            why="the number of brokers is fixed when the data directory is made",
            fix=f"use {found.brokers}, or give another home directory (HEADRACE__HOME) for {brokers}",
        )
    return found


def _new_id() -> str:
    """A random id as Kafka writes them. Its tools would take one that begins with a dash for an option."""
    while (made := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return made


def _identity(data: Path) -> tuple[str, str]:
    """Cluster and node that a data directory belongs to; empty where it does not say."""
    try:
        lines = (data / "meta.properties").read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    said = dict(line.split("=", 1) for line in lines if "=" in line)
    return said.get("cluster.id", ""), said.get("node.id", "")


def controller(name: str) -> str:
    """The name of the port on which a broker's controller listens."""
    return f"{name}.controller"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kafka(Part):
    """One broker with its controller."""

    node: int
    cluster: Cluster
    controllers: tuple[int, ...]  # the controllers' ports of the whole cluster, by node
    fetch: Fetch
    door: int = 0  # the port at which clients are told to come, where something stands in front; 0: its own
    patience: timedelta = PATIENCE

    corrupt: ClassVar[tuple[str, ...]] = (
        "meta.properties",
        "Error while reading the Quorum status",
        "CorruptRecordException",
        "metadata loading fault",
    )
    # Kafka cuts a damaged metadata log short, forgets the topics behind the cut, and deletes their records a minute
    # later. Stopped at once, it has only renamed them.
    alarm: ClassVar[str] = r"partition=__cluster_metadata-0,.*Corruption found"

    @property
    def url(self) -> str:
        return self.address

    def prepare(self, run: Run) -> Sequence[str]:
        paths = self.fetch("kafka")
        data = self.home / "data"
        if not data.exists():
            # Beside the final place, then a rename: a start that was interrupted leaves nothing half made.
            draft = data.with_name("data.new")
            shutil.rmtree(draft, ignore_errors=True)
            file = self._configure(draft)
            storage = ("kafka.tools.StorageTool", "format", "-t", self.cluster.id, "-c", str(file))
            run(jvm.command(self.home, paths, "64m", *storage))
            self._check(draft)  # on a full disk the format reports success all the same
            draft.rename(data)
        self._check(data)
        return jvm.command(self.home, paths, _HEAP, "kafka.Kafka", str(self._configure(data)))

    def _check(self, data: Path) -> None:
        if _identity(data) != (self.cluster.id, str(self.node)):
            raise failure.corrupt(self, f"{data / 'meta.properties'} does not name this cluster and node {self.node}")

    def answers(self) -> bool:
        found = kafka_wire.ask(LOOPBACK, self.ports[self.name])
        # The right cluster, and this broker among those it counts on: registered and no longer fenced.
        return found is not None and found.id == self.cluster.id and self.node in found.brokers

    def _configure(self, data: Path) -> Path:
        clients, own = self.address, f"{LOOPBACK}:{self.ports[controller(self.name)]}"
        copies = self.cluster.brokers
        enough = 2 if copies == 3 else 1
        settings = {
            "process.roles": "broker,controller",
            "node.id": self.node,
            # Voters by configuration, not in the log: the ports may change between two starts.
            "controller.quorum.voters": ",".join(
                f"{node}@{LOOPBACK}:{port}" for node, port in enumerate(self.controllers, 1)
            ),
            "listeners": f"BROKER://{clients},CONTROLLER://{own}",
            "advertised.listeners": f"BROKER://{LOOPBACK}:{self.door or self.ports[self.name]}",
            "listener.security.protocol.map": "BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "BROKER",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": data,
            "auto.create.topics.enable": "false",  # a misspelt topic is an error, not a new topic
            "default.replication.factor": copies,
            "min.insync.replicas": enough,
            # Kafka's own topics: one partition each, since one machine gains nothing from more.
            "offsets.topic.num.partitions": 1,
            "offsets.topic.replication.factor": copies,
            "transaction.state.log.num.partitions": 1,
            "transaction.state.log.replication.factor": copies,
            "transaction.state.log.min.isr": enough,
            "share.coordinator.state.topic.num.partitions": 1,
            "share.coordinator.state.topic.replication.factor": copies,
            "share.coordinator.state.topic.min.isr": enough,
            # Groups form at once, and may notice a dead member within a second if they ask for it.
            "group.initial.rebalance.delay.ms": 0,
            "group.min.session.timeout.ms": 1000,
            # How long a dead broker is still counted on, and cannot come back. Of three, another takes over after it.
            "broker.session.timeout.ms": millis(self.patience) if copies == 1 else 6000,
            "broker.heartbeat.interval.ms": millis(self.patience) // 5 if copies == 1 else 1000,
            # A broker that crashed forgets producers whose newest record is dated longer ago than this, and takes what
            # they repeat for new. Records are dated by their events: as long as an int of milliseconds can say.
            "producer.id.expiration.ms": 2**31 - 1,
            # Memory and threads for one machine.
            "log.cleaner.dedupe.buffer.size": 4 << 20,
            "num.network.threads": 2,
            "num.io.threads": 4,
            "background.threads": 2,
        }
        file = self.home / "server.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        return file
