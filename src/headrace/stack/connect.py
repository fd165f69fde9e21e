"""Kafka Connect 4.3, distributed mode with one worker, exactly-once sources; started on demand."""

from __future__ import annotations

import http.client
from collections.abc import Sequence
from dataclasses import dataclass

from headrace.stack import jvm
from headrace.stack.jvm import Fetch
from headrace.stack.part import LOOPBACK, Part, Run

_HEAP = "256m"


@dataclass(frozen=True, slots=True, kw_only=True)
class Connect(Part):
    """One worker. Connectors are found in `plugins/`, one directory of jars each."""

    brokers: str
    copies: int
    fetch: Fetch

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    def prepare(self, run: Run) -> Sequence[str]:
        paths = self.fetch("connect")
        plugins = self.home / "plugins"
        plugins.mkdir(exist_ok=True)
        stored = {
            f"{what}.storage.{key}": value
            for what in ("config", "offset", "status")
            for key, value in (("topic", f"headrace-connect-{what}"), ("replication.factor", self.copies))
        }
        settings = stored | {
            "bootstrap.servers": self.brokers,
            "group.id": "headrace-connect",
            "listeners": self.url,
            "rest.advertised.host.name": LOOPBACK,
            "offset.storage.partitions": 1,
            "status.storage.partitions": 1,
            "key.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "plugin.path": plugins,
            "plugin.discovery": "service_load",
            "exactly.once.source.support": "enabled",
            "scheduled.rebalance.max.delay.ms": 0,  # nobody else could take over the connectors meanwhile
        }
        file = self.home / "worker.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        return jvm.command(self.home, paths, _HEAP, "org.apache.kafka.connect.cli.ConnectDistributed", str(file))

    def answers(self) -> bool:
        connection = http.client.HTTPConnection(LOOPBACK, self.ports[self.name], timeout=2)
        try:
            connection.request("GET", "/health")  # 200 once the worker has joined its group
            return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
