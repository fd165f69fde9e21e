"""topics and partitions: what is on the log, and how wide a topic should be."""

from __future__ import annotations

from datetime import timedelta

import pytest

from headrace.log import topics
from headrace.log.broker import Broker
from headrace.model.topic import Topic
from tests.cli.conftest import Headrace


def test_topics_are_listed_with_what_matters(headrace: Headrace, broker: Broker, topic: str) -> None:
    topics.ensure(
        broker,
        Topic(name=f"{topic}.a", partitions=2),
        Topic(name=f"{topic}.b", partitions=1, retention=timedelta(days=7)),
        Topic(name=f"{topic}.c", partitions=1, compact=True),
    )
    rows = {row["topic"]: row for row in headrace("topics", "--json").json}
    assert rows[f"{topic}.a"] == {
        "topic": f"{topic}.a",
        "partitions": 2,
        "replicas": 1,
        "records": 0,
        "kept": None,
        "compact": False,
    }
    assert (rows[f"{topic}.b"]["kept"], rows[f"{topic}.c"]["compact"]) == (604800.0, True)
    kept = {line.split()[0]: " ".join(line.split()[4:]) for line in headrace("topics").out.splitlines()}
    assert (kept[f"{topic}.a"], kept[f"{topic}.b"], kept[f"{topic}.c"]) == ("for ever", "7 d", "latest per key")


def test_partitions_shows_the_formula(headrace: Headrace) -> None:
    said = headrace("partitions", "--throughput", "40MB", "--consumers", "6")
    assert said.out.splitlines()[:2] == ["6 partitions", "  max(40MB / 10 MB, 6 consumers) = max(4, 6)"]
    found = headrace("partitions", "--throughput", "0.2 GB/s", "--consumers", "6", "--json").json
    assert (found["partitions"], found["for_throughput"], found["for_consumers"]) == (20, 20, 6)


@pytest.mark.parametrize("rate", ["fast", "-3MB", "40 MW"])
def test_a_throughput_that_is_none_is_a_usage_error(headrace: Headrace, rate: str) -> None:
    said = headrace("partitions", f"--throughput={rate}")
    assert (said.code, said.out) == (2, "")
    assert "for example 40MB" in said.err
