"""Kafka: three brokers that survive the loss of one; damaged data directories; the frozen number of brokers."""

import os
import shutil
import signal
from datetime import timedelta
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from headrace.base.errors import BadSetting, CorruptData
from headrace.stack import kafka, stack
from headrace.stack.stack import Addresses
from tests.stack.waiting import until

QUIET = {"log_level": 0}  # librdkafka writes to stderr about the broker we kill


def test_three_brokers_hold_every_record_three_times_and_outlive_one(tmp_path: Path, cache: Path) -> None:
    home = tmp_path / "home"
    try:
        addresses = stack.up(home, cache, brokers=3, parts=("kafka",))
        admin = AdminClient({"bootstrap.servers": addresses.kafka, **QUIET})
        admin.create_topics([NewTopic("spread", 3)])["spread"].result()

        def everywhere() -> bool:
            partitions = admin.list_topics("spread", timeout=5).topics["spread"].partitions.values()
            return len(partitions) == 3 and all(len(p.replicas) == 3 and len(p.isrs) == 3 for p in partitions)

        until(everywhere)
        resource = ConfigResource(ResourceType.BROKER, "1")
        assert admin.describe_configs([resource])[resource].result()["min.insync.replicas"].value == "2"
        # when one broker is killed
        victim = next(part for part in stack.status(home) if part.name == "kafka-2")
        os.kill(victim.pid or 0, signal.SIGKILL)
        # then every partition still takes records with acks=all
        failures: list[object] = []
        producer = Producer({"bootstrap.servers": addresses.kafka, "acks": "all", **QUIET})
        for partition in range(3):
            producer.produce("spread", b"x", partition=partition, on_delivery=lambda e, _: failures.append(e))
        assert producer.flush(30) == 0
        assert failures == [None, None, None]
        # and it can be healed into the same cluster
        assert stack.up(home, cache, brokers=3, parts=("kafka",)) == addresses
        until(everywhere, 20)
        with pytest.raises(BadSetting, match=r"has 3 broker\(s\), not 1") as caught:
            stack.up(home, cache, parts=("kafka",))
        assert "HEADRACE__HOME" in caught.value.fix
    finally:
        stack.down(home)


def test_a_lone_broker_has_the_patience_it_is_given(tmp_path: Path, cache: Path) -> None:
    home = tmp_path / "home"
    try:
        addresses = stack.up(home, cache, parts=("kafka",), patience=timedelta(seconds=9))
        resource = ConfigResource(ResourceType.BROKER, "1")
        admin = AdminClient({"bootstrap.servers": addresses.kafka, **QUIET})
        said = admin.describe_configs([resource])[resource].result()
        assert said["broker.session.timeout.ms"].value == "9000"
        assert said["broker.heartbeat.interval.ms"].value == "1800"
    finally:
        stack.down(home)


def test_other_numbers_of_brokers_are_refused(small: Path, cache: Path) -> None:
    with pytest.raises(BadSetting, match="2 brokers is not offered"):
        stack.up(small, cache, brokers=2)


def test_no_cluster_is_named_like_an_option(tmp_path: Path) -> None:
    named = {kafka.cluster(tmp_path, 1).id for _ in range(2_000)}
    assert len(named) == 2_000
    assert not [id for id in named if id.startswith("-")]


def test_a_data_directory_of_nobody_is_refused(small: Path, cache: Path) -> None:
    (small / "kafka" / "data").mkdir(parents=True)
    (small / "kafka" / "data" / "meta.properties").write_text("#\nversion=1\n")
    with pytest.raises(CorruptData, match="the data of kafka cannot be used") as caught:
        stack.up(small, cache, parts=("kafka",))
    assert "meta.properties" in caught.value.why
    assert str(small / "kafka") in caught.value.fix


@pytest.fixture
def copy(home: Path, running: Addresses, tmp_path: Path) -> Path:
    """The data of the room's Kafka with a topic in it, in a home of its own. It is copied while Kafka runs: that is
    how a crash would leave it, and spares a stop and a start."""
    admin = AdminClient({"bootstrap.servers": running.kafka, **QUIET})
    admin.create_topics([NewTopic("precious", 1)])["precious"].result()
    until(lambda: any((home / "kafka" / "data").glob("precious-0")))
    passing = shutil.ignore_patterns("*.tmp", "*-delete")  # files may go while they are copied
    shutil.copytree(home / "kafka" / "data", tmp_path / "copy" / "kafka" / "data", ignore=passing)
    return tmp_path / "copy"


def test_a_damaged_metadata_log_is_not_quietly_cut_short(copy: Path, cache: Path) -> None:
    # given a metadata log overwritten in the middle: Kafka itself would start, forget the topics and delete them
    for log in (copy / "kafka" / "data" / "__cluster_metadata-0").glob("*.log"):
        with log.open("r+b") as file:
            file.seek(300)
            file.write(b"\xff" * 200)
    # then it is refused, also the second time, and the records are still there
    for _ in range(2):
        with pytest.raises(CorruptData, match="the data of kafka cannot be used") as caught:
            stack.up(copy, cache, parts=("kafka",))
        assert "Corruption found" in caught.value.why
        assert "damaged" in caught.value.fix
    assert list((copy / "kafka" / "data").glob("precious-0*"))
    assert [part.state for part in stack.status(copy)] == ["stopped"] * 3
