"""A Kafka of your own as companies run it: SCRAM passwords, TLS, mutual TLS; one broker with a door for each."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from headrace.base.settings import Settings
from headrace.stack import jars, jvm, ports
from tests.log.paying import until

USER, PASSWORD = "ann", "open-sesame"
DOORS = ("plain", "scram", "secure", "mutual")


@dataclass(frozen=True, slots=True, kw_only=True)
class Secured:
    """Where each door is, and the files that open them."""

    ports: dict[str, int]
    home: Path

    def at(self, door: str) -> str:
        return f"127.0.0.1:{self.ports[door]}"


@contextmanager
def secured(home: Path, settings: Settings) -> Iterator[Secured]:
    _certificates(home)
    found = ports.choose(home, ["controller", *DOORS], {}, jars.silent)
    file = home / "server.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in _configured(home, found).items()))
    path = jars.fetch("kafka", settings.cache)
    scram = f"SCRAM-SHA-512=[name={USER},password={PASSWORD}]"
    form = ("kafka.tools.StorageTool", "format", "-t", "aaaaaaaaaaaaaaaaaaaaaA", "-c", str(file), "--add-scram", scram)
    subprocess.run(jvm.command(home, path, "64m", *form), check=True, capture_output=True)
    with (home / "broker.log").open("w") as log:
        broker = subprocess.Popen(jvm.command(home, path, "256m", "kafka.Kafka", str(file)), stdout=log, stderr=log)
    try:
        until(lambda: "Kafka Server started" in (home / "broker.log").read_text(), within=60)
        yield Secured(ports=found, home=home)
    finally:
        broker.kill()
        broker.wait()


def _configured(home: Path, found: dict[str, int]) -> dict[str, object]:
    pem = {
        f"ssl.{store}.{what}": value
        for store, file in (("keystore", "server.pem"), ("truststore", "ca.pem"))
        for what, value in (("type", "PEM"), ("location", home / file))
    }
    return pem | {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@127.0.0.1:{found['controller']}",
        "listeners": ",".join(f"{name.upper()}://127.0.0.1:{found[name]}" for name in ("controller", *DOORS)),
        "listener.security.protocol.map": (
            "CONTROLLER:PLAINTEXT,PLAIN:PLAINTEXT,SCRAM:SASL_PLAINTEXT,SECURE:SASL_SSL,MUTUAL:SSL"
        ),
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAIN",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        **{
            f"listener.name.{door}.scram-sha-512.sasl.jaas.config": (
                "org.apache.kafka.common.security.scram.ScramLoginModule required;"
            )
            for door in ("scram", "secure")
        },
        "listener.name.mutual.ssl.client.auth": "required",
        "log.dirs": home / "data",
        "offsets.topic.num.partitions": 1,
        "offsets.topic.replication.factor": 1,
        "group.initial.rebalance.delay.ms": 0,
    }


def _certificates(home: Path) -> None:
    """A certificate authority of our own, and a key for the server and for a client."""

    def openssl(*args: str) -> None:
        subprocess.run(["openssl", *args], cwd=home, check=True, capture_output=True)

    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    (home / "san").write_text("subjectAltName=IP:127.0.0.1\n")
    for authority in ("ca", "stranger"):
        subject = ("-subj", f"/CN={authority}", "-days", "2")
        openssl("req", "-x509", *key, *subject, "-keyout", f"{authority}.key", "-out", f"{authority}.pem")
    for name in ("server", "client"):
        openssl("req", *key, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
        signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "san")
        openssl("x509", "-req", "-in", f"{name}.csr", *signed, "-out", f"{name}.crt")
        (home / f"{name}.pem").write_text((home / f"{name}.key").read_text() + (home / f"{name}.crt").read_text())
