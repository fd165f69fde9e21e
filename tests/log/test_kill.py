"""Kill -9 of real processes: what a guarantee promises is what is found afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from headrace.base.errors import DeliveryFailed
from headrace.base.ids import random_id
from headrace.base.settings import Settings
from headrace.log import groups, topics
from headrace.log.broker import Broker
from headrace.log.consume import Consumer
from headrace.log.produce import Producer
from headrace.log.read import read
from headrace.model.topic import Topic
from headrace.stack import ports, stack
from tests.log.paying import Declare, ids, payment_on, payments, send, topic_of, until

ROOT = Path(__file__).parents[2]


class Reader:
    """A running `tests.log.reader`, and what it says."""

    def __init__(self, *args: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.log.reader", *args], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        self.said: Queue[str] = Queue()
        self.lines: list[str] = []
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.strip())
            self.said.put(line.strip())

    def wait_for(self, start: str) -> str:
        while True:
            line = self.said.get(timeout=30)
            if line.startswith(start):
                return line

    @property
    def got(self) -> list[str]:
        return [line.removeprefix("got ") for line in self.lines if line.startswith("got ")]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


@pytest.fixture
def reader() -> Iterator[Callable[..., Reader]]:
    started: list[Reader] = []

    def start(*args: str) -> Reader:
        started.append(Reader(*args))
        return started[-1]

    yield start
    for one in started:
        one.kill()


@pytest.mark.parametrize(("deliver", "next_read"), [("at-least-once", "p2"), ("at-most-once", "p3")])
def test_a_reader_killed_between_processing_and_commit_rereads_or_skips(
    broker: Broker, declare: Declare, reader: Callable[..., Reader], deliver: str, next_read: str
) -> None:
    payment, group = declare(), f"g-{random_id()[:12]}"
    send(broker, payment, payments(payment, 6))
    with Consumer(broker, payment, group=group) as consumer:  # the group has read two before
        ids(next(iter(consumer)) for _ in range(2))
    victim = reader(broker.bootstrap, topic_of(payment), group, deliver, "1500 ms", "60")
    assert victim.wait_for("got") == "got p2"  # and is now busy with it, for a minute
    victim.kill()
    with Consumer(broker, payment, group=group, session="1500 ms") as consumer:
        assert next(iter(consumer)).event.payment_id == next_read


def test_three_readers_over_six_partitions_share_again_when_one_dies(
    broker: Broker, declare: Declare, reader: Callable[..., Reader]
) -> None:
    payment, group = declare(partitions=6), f"g-{random_id()[:12]}"
    trio = [reader(broker.bootstrap, topic_of(payment), group, "at-least-once", "1500 ms", "0") for _ in range(3)]

    def shares() -> list[int]:
        return sorted(len(member.places) for member in groups.describe(broker, group)[0].members)

    until(lambda: shares() == [2, 2, 2])
    trio[0].kill()
    until(lambda: shares() == [3, 3])
    send(broker, payment, payments(payment, 60))
    survivors = trio[1:]
    until(lambda: sum(len(one.got) for one in survivors) >= 60)
    assert sorted(survivors[0].got + survivors[1].got) == sorted(f"p{n}" for n in range(60))
    assert all(one.got for one in survivors)


Own = tuple[Broker, Callable[[], None], Callable[[], object]]


@pytest.fixture(scope="module")
def own_broker(tmp_path_factory: pytest.TempPathFactory, settings: Settings) -> Iterator[Own]:
    """A broker for these tests alone, a way to kill it and a way to start it again; the shared one lives on."""
    home = tmp_path_factory.mktemp("own")

    def start(**fixed: int) -> str:
        return stack.up(home, settings.cache, parts=("kafka",), foreground=True, fixed_ports=fixed).kafka

    def kill() -> None:
        pid = next(part.pid for part in stack.status(home) if part.name == "kafka")
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        until(lambda: ports.free(port))

    address = start()
    port = int(address.rpartition(":")[2])
    yield Broker(bootstrap=address), kill, lambda: start(kafka=port)
    stack.down(home)


def test_a_broker_killed_while_producing_loses_no_acknowledged_event(own_broker: Own) -> None:
    broker, kill, start = own_broker
    name = f"t-{random_id()[:12]}"
    topics.ensure(broker, Topic(name=name, partitions=3))
    payment = payment_on(name)
    yesterday = datetime.now(UTC) - timedelta(days=1)  # of records dated longer ago a broker forgets the producer

    def some(count: int, first: int) -> list[Any]:
        return payments(payment, count, first=first, start=yesterday)

    producer = Producer(broker, payment)  # acks=all, idempotent
    producer.send_many(some(2_000, 0))
    producer.flush()  # acknowledged before the kill
    producer.send_many(some(20_000, 2_000))
    kill()  # with a queue full of records on their way
    producer.send_many(some(1_000, 22_000))
    start()
    producer.flush()  # acknowledged after it

    seen = [dict(message.headers())["hr-id"].decode() for message in read(broker, name)]
    assert sorted(seen) == sorted(f"p{n}" for n in range(23_000))  # every one, and each once


def test_what_a_dead_broker_did_not_take_is_raised_and_given_back(own_broker: Own) -> None:
    broker, kill, start = own_broker
    start()
    name = f"t-{random_id()[:12]}"
    topics.ensure(broker, Topic(name=name))
    payment = payment_on(name)
    producer = Producer(broker, payment, give_up_after="1 s")
    kill()
    producer.send_many(payments(payment, 3))
    with pytest.raises(DeliveryFailed) as refused:
        producer.flush()
    assert refused.value.what == f"3 records were not written to {name!r}"
    assert [message.key() for message in producer.undelivered] == [b"c0", b"c1", b"c2"]
