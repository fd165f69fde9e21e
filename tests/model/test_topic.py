"""A declared topic holds only what Kafka can have."""

from __future__ import annotations

from datetime import timedelta

import pytest

from headrace.base.errors import BadTopic
from headrace.model.topic import Topic


def test_a_topic_says_how_wide_and_how_long() -> None:
    assert str(Topic(name="a")) == "a: default partitions, kept for ever"
    assert str(Topic(name="a", compact=True, retention=timedelta(hours=1))) == (
        "a: default partitions, latest value per key, kept 1 h"
    )


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "käse", "x" * 250, "a/b", None])
def test_names_that_kafka_refuses_are_refused_here(name: str) -> None:
    with pytest.raises(BadTopic) as refused:
        Topic(name=name)
    assert refused.value.where is not None
    assert refused.value.where.file == __file__


@pytest.mark.parametrize(
    "bad", [{"partitions": 0}, {"partitions": True}, {"replication": -1}, {"retention": timedelta(0)}]
)
def test_counts_and_times_are_more_than_nothing(bad: dict[str, int]) -> None:
    with pytest.raises(BadTopic):
        Topic(name="a", **bad)
