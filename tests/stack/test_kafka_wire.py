"""Asking a broker by hand: anything but a whole answer is no answer."""

import socket
import threading

import pytest

from headrace.stack import kafka_wire
from headrace.stack.kafka_wire import Cluster
from headrace.stack.stack import Addresses


def test_a_broker_names_its_cluster_and_itself(running: Addresses) -> None:
    host, port = running.kafka.split(":")
    found = kafka_wire.ask(host, int(port))
    assert found is not None
    assert found.brokers == {1}
    assert len(found.id) == 22


@pytest.mark.parametrize("answer", [b"", b"\0\0", b"\0\0\0\x08abc", b"HTTP/1.1 400 Bad Request\r\n\r\n"])
def test_half_an_answer_is_none(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(100)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        assert kafka_wire.ask("127.0.0.1", server.getsockname()[1]) is None
        thread.join()


def test_silence_is_none() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert kafka_wire.ask("127.0.0.1", server.getsockname()[1], timeout=0.1) is None


def test_a_cluster_is_read_from_bytes() -> None:
    broker = b"\0\0\0\x07" + b"\0\x01h" + b"\0\0\0\x50" + b"\xff\xff"
    assert kafka_wire._cluster(b"\0\0\0\1" + b"\0\0\0\1" + broker + b"\0\x02id") == Cluster("id", frozenset({7}))
