"""Advice on partitions: max(throughput / 10 MB, consumers), rounded up."""

from __future__ import annotations

import pytest

from headrace.base.errors import UsageError
from headrace.log import advice


@pytest.mark.parametrize(
    ("throughput", "consumers", "partitions"),
    [(40, 6, 6), (100, 3, 10), (101, 3, 11), (0, 0, 1), (0.5, 0, 1), (10, 1, 1)],
)
def test_the_greater_need_decides(throughput: float, consumers: int, partitions: int) -> None:
    assert advice.partitions(throughput_mb=throughput, consumers=consumers).partitions == partitions


def test_it_says_why() -> None:
    assert "throughput asks for 10" in advice.partitions(throughput_mb=100, consumers=3).because
    assert "the number of consumers decides" in advice.partitions(throughput_mb=40, consumers=6).because


def test_negative_amounts_are_no_question() -> None:
    with pytest.raises(UsageError):
        advice.partitions(throughput_mb=-1, consumers=1)
    with pytest.raises(UsageError):
        advice.partitions(throughput_mb=float("inf"), consumers=1)
