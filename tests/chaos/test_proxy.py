"""The door in front of a broker: it passes everything on, cuts, and loses the answer to a commit."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.base.settings import Settings
from headrace.chaos.proxy import Proxy
from headrace.log import topics
from headrace.log.broker import Broker
from headrace.log.read import read
from headrace.model.topic import Topic
from headrace.spark.session import Spark
from headrace.stack import ports
from headrace.stack import stack as embedded
from tests.spark.flowing import Flowing


@pytest.fixture(scope="module")
def proxy(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """In front of a broker of its own, which sends its clients there."""
    home = tmp_path_factory.mktemp("behind")
    opened = Proxy()
    embedded.up(home, settings.cache, parts=("kafka",), foreground=True, door=opened.port)
    opened.broker_port = ports.remembered(home)["kafka"]
    yield opened
    opened.close()
    embedded.down(home)


@pytest.fixture
def behind(proxy: Proxy) -> Broker:
    return Broker(bootstrap=f"127.0.0.1:{proxy.port}")


def values(broker: Broker, topic: str) -> list[bytes]:
    return [message.value() for message in read(broker, topic)]


def test_clients_survive_a_cut(proxy: Proxy, behind: Broker, topic: str) -> None:
    topics.ensure(behind, Topic(name=topic, partitions=1))
    client = behind.producer({"enable.idempotence": True, "linger.ms": 0})
    for number in range(5):
        client.produce(topic, str(number))
        assert client.flush(20) == 0
        assert proxy.cut() > 0
    assert values(behind, topic) == [b"0", b"1", b"2", b"3", b"4"]


def test_a_commit_whose_answer_is_lost_has_happened(proxy: Proxy, behind: Broker, topic: str) -> None:
    topics.ensure(behind, Topic(name=topic, partitions=1))
    client = behind.producer({"transactional.id": topic})
    client.init_transactions(20)
    client.begin_transaction()
    client.produce(topic, "once")
    lost = threading.Event()
    proxy.lose_commit(lost.set)
    client.commit_transaction(60)
    assert lost.is_set()
    assert values(behind, topic) == [b"once"]


def test_a_batch_whose_commit_was_not_answered_is_written_once(
    spark: Spark, proxy: Proxy, behind: Broker, topic: str, tmp_path: Path
) -> None:
    @hr.event(topic=topic, key="page", time="at", id="visit")
    class Visit:
        visit: str
        page: str
        at: datetime

    app = hr.App(topic)
    app.stream(Visit, disorder="0 s").to(app.topic(f"{topic}-out", partitions=1))
    flowing = Flowing(spark, behind, tmp_path, app)
    start = datetime(2020, 1, 1, tzinfo=UTC)
    visits: list[Any] = [Visit(f"v{n}", "p", start + timedelta(seconds=n)) for n in range(40)]
    lost: list[int] = []
    with flowing.live() as query:
        query.batch(*visits[:10])
        for first in (10, 20, 30):
            proxy.lose_commit(lambda: lost.append(1))
            query.batch(*visits[first : first + 10])
    assert len(lost) == 3
    assert [row["visit"] for row in flowing.rows(f"{topic}-out")] == [visit.visit for visit in visits]
