"""Sizes of state: one a minute, over restarts, whatever a kill left of the last line."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from headrace.observe.growth import Limits, Size
from headrace.spark.sizes import KEPT, Sizes, read_sizes

START = datetime(2026, 11, 15, 10, tzinfo=UTC)


def size(seconds: int, keys: int) -> Size:
    return Size(at=START + timedelta(seconds=seconds), keys=keys, rows=1, bytes=2)


def test_the_size_after_the_last_batch_is_kept_though_none_follows(tmp_path: Path) -> None:
    sizes = Sizes(tmp_path / "sizes.csv", Limits())
    sizes.take(size(0, 5))
    sizes.take(size(30, 90))
    sizes.keep(START + timedelta(seconds=59))
    assert read_sizes(sizes.file) == [size(0, 5)]
    sizes.keep(START + timedelta(seconds=60))
    sizes.keep(START + timedelta(seconds=500))
    assert read_sizes(sizes.file) == [size(0, 5), size(30, 90)]


def test_a_run_that_never_stops_keeps_no_more_than_two_days(tmp_path: Path) -> None:
    sizes = Sizes(tmp_path / "sizes.csv", Limits())
    for minute in range(2 * KEPT + 2):
        sizes.take(size(60 * minute, 1))
    assert KEPT <= len(read_sizes(sizes.file)) <= KEPT + 1


def test_one_a_minute_is_kept_and_found_by_the_next_run(tmp_path: Path) -> None:
    file = tmp_path / "sizes.csv"
    limits = Limits(percent=100, over=timedelta(minutes=2), entries=10)
    sizes = Sizes(file, limits)
    assert [sizes.take(size(at, keys)) for at, keys in ((0, 5), (30, 6), (60, 7), (119, 90))] == [""] * 4
    assert read_sizes(file) == [size(0, 5), size(60, 7)]

    with file.open("a") as cut:
        cut.write("17")
    again = Sizes(file, limits)

    assert again.take(size(130, 90)) == "state grew from 6 to 91 keys and rows in 2 min 10 s"
    assert read_sizes(file) == [size(0, 5), size(60, 7), size(130, 90)]
