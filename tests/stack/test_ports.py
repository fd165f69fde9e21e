"""Ports are remembered, moved when a stranger took them, and a fixed one that is taken names its holder."""

import os
import socket
from pathlib import Path

import pytest

from headrace.base.errors import PortBusy
from headrace.stack import ports, stack


def test_ports_are_remembered(tmp_path: Path) -> None:
    first = ports.choose(tmp_path, ["kafka", "redis"], {}, print)
    assert ports.choose(tmp_path, ["kafka", "redis"], {}, print) == first == ports.remembered(tmp_path)
    assert len(set(first.values())) == 2


def test_a_remembered_port_that_a_stranger_took_is_given_up(small: Path, cache: Path) -> None:
    stack.up(small, cache, parts=("redis",))
    stack.down(small)
    port = ports.remembered(small)["redis"]
    said: list[str] = []
    with socket.create_server(("127.0.0.1", port)):
        addresses = stack.up(small, cache, parts=("redis",), tell=said.append)
    assert f":{port}/" not in addresses.redis
    assert any(f"port {port} of redis is now held by" in text and f"(pid {os.getpid()})" in text for text in said)


def test_a_port_that_is_taken_after_we_looked_is_given_up(
    small: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as faster:
        port = faster.getsockname()[1]
        small.mkdir()
        (small / "ports.json").write_text(f'{{"redis": {port}}}')
        looks = iter([True])  # the first look was a moment before the other process took it
        look = ports.free
        monkeypatch.setattr(ports, "free", lambda wanted: next(looks, False) or look(wanted))
        said: list[str] = []
        addresses = stack.up(small, cache, parts=("redis",), tell=said.append)
    assert f":{port}/" not in addresses.redis
    assert any(f"redis cannot listen on 127.0.0.1:{port}" in text for text in said)


def test_a_fixed_port_is_used_and_remembered(small: Path, cache: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    assert f":{port}/" in stack.up(small, cache, parts=("redis",), fixed_ports={"redis": port}).redis


def test_a_fixed_port_that_is_taken_names_the_process(small: Path, cache: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
        with pytest.raises(PortBusy, match=f"redis cannot listen on 127.0.0.1:{port}") as caught:
            stack.up(small, cache, parts=("redis",), fixed_ports={"redis": port})
    assert f"(pid {os.getpid()})" in caught.value.why
    assert caught.value.fix


def test_a_file_that_cannot_be_read_is_forgotten(tmp_path: Path) -> None:
    (tmp_path / "ports.json").write_text('["kafka"')
    assert ports.remembered(tmp_path) == {}
