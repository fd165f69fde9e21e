"""The broker: reached or not, and said so with every address involved."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from headrace.base.errors import BadSetting, BrokerUnreachable
from headrace.base.settings import load
from headrace.log import topics
from headrace.log.broker import Broker


def free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        return int(server.getsockname()[1])


@contextmanager
def misadvertised(broker: Broker, port: int) -> Iterator[str]:
    """The real broker behind a door that changes the port it advertises, as a wrong advertised.listeners would."""
    host, _, real = broker.bootstrap.rpartition(":")
    true = bytes([len(host) + 1]) + host.encode() + int(real).to_bytes(4, "big")
    false = true[:-4] + port.to_bytes(4, "big")
    server = socket.create_server(("127.0.0.1", 0))

    def carry(source: socket.socket, target: socket.socket, change: bool) -> None:
        with source, target, suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(data.replace(true, false) if change else data)

    def serve() -> None:
        with suppress(OSError):
            while True:
                client = server.accept()[0]
                inner = socket.create_connection((host, int(real)))
                threading.Thread(target=carry, args=(client, inner, False), daemon=True).start()
                threading.Thread(target=carry, args=(inner, client, True), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    with closing(server):
        yield f"127.0.0.1:{server.getsockname()[1]}"


def test_a_broker_that_answers_says_its_addresses(broker: Broker) -> None:
    assert broker.reach() == (broker.bootstrap,)


def test_nothing_at_the_address_is_said_with_the_address() -> None:
    address = f"127.0.0.1:{free_port()}"
    with pytest.raises(BrokerUnreachable) as refused:
        Broker(bootstrap=address).reach(within="1 s")
    assert refused.value.what == f"no broker answers at {address}"
    assert "Connection refused" in refused.value.why
    assert "headrace up" in refused.value.fix
    assert refused.value.exit_code == 3


def test_an_advertised_address_that_is_dead_is_named(broker: Broker) -> None:
    dead = free_port()
    with misadvertised(broker, dead) as door, pytest.raises(BrokerUnreachable) as refused:
        Broker(bootstrap=door).reach()
    assert refused.value.what == f"the broker at {door} advertises 127.0.0.1:{dead}, which cannot be reached"
    assert "advertised.listeners" in refused.value.fix


def test_an_advertised_address_is_named_also_when_the_first_answer_came_too_late(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.log.broker._FIRST_LOOK", 0.000_001)
    dead = free_port()
    with misadvertised(broker, dead) as door, pytest.raises(BrokerUnreachable) as refused:
        Broker(bootstrap=door).reach(within="1 s")
    assert refused.value.what == f"the broker at {door} advertises 127.0.0.1:{dead}, which cannot be reached"


def test_what_is_no_address_is_said_so() -> None:
    with pytest.raises(BrokerUnreachable, match="is not host:port"):
        Broker(bootstrap="kafka").reach()


def test_other_questions_find_the_same_answer() -> None:
    with pytest.raises(BrokerUnreachable):
        topics.listing(Broker(bootstrap=f"127.0.0.1:{free_port()}"))


def test_settings_become_client_settings(tmp_path: Path) -> None:
    secret = tmp_path / "password"
    secret.write_text("hush\n")
    settings = load(
        {
            "kafka.bootstrap": "kafka.example:9093",
            "kafka.security": "SASL_SSL",
            "kafka.sasl_mechanism": "SCRAM-SHA-512",
            "kafka.username": "u",
            "kafka.password": f"${{file:{secret}}}",
            "kafka.ca_file": "ca.pem",
        },
        root=tmp_path,
        env={},
    )
    made = Broker.of(settings, embedded="127.0.0.1:1")
    assert made.config() == {
        "bootstrap.servers": "kafka.example:9093",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "u",
        "sasl.password": "hush",
        "ssl.ca.location": str(tmp_path / "ca.pem"),
    }
    assert "hush" not in repr(made)


def test_without_an_own_kafka_the_embedded_one_is_used(tmp_path: Path) -> None:
    assert Broker.of(load(root=tmp_path, env={}), embedded="127.0.0.1:7").bootstrap == "127.0.0.1:7"


def test_settings_the_client_refuses_are_a_setting_error(broker: Broker) -> None:
    with pytest.raises(BadSetting, match="refuses its settings"):
        Broker(bootstrap=broker.bootstrap, security="SECRET").admin()
