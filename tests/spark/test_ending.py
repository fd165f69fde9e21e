"""When a real-time interval ends: by the clock, but never of all twins at once (jvm/Ending.scala)."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import time
from typing import Any

import pytest

import headrace as hr
from headrace.log.broker import Broker
from headrace.spark.session import Spark
from tests.spark.flowing import Flowing, running, short_batches, until, visit_on

DAY = datetime(2026, 11, 3, 10, tzinfo=UTC)
EVERY = 60_000
NOW = 1_000 * EVERY + 20_000
END = 1_001 * EVERY
AWAY = 60_000
"""How old a word is by which a twin says that it is away."""


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """Of twin 1 and twin 2 of one flow, and of another flow whose name begins alike."""
    for name in ("visits", "visits~2", "visits+pages"):
        (tmp_path / name).mkdir()
    (tmp_path / "visits+pages" / "answering").touch()
    return tmp_path / "visits" / "answering", tmp_path / "visits~2" / "answering"


def ending(spark: Spark, answering: Path, *, tasks: int = 2) -> Any:
    place = spark.session._jvm.scala.Option.apply(str(answering))
    return spark.jvm.Ending(spark.jvm.Interval(EVERY, 0, place), tasks, NOW)


def said(answering: Path, at: int) -> None:
    answering.touch()
    os.utime(answering, (at / 1000, at / 1000))


def when(answering: Path) -> int:
    return round(answering.stat().st_mtime * 1000)


def keeps_up(interval: Any, since: int, until: int, tasks: tuple[int, ...] = (0, 1)) -> None:
    for now in range(since, until + 1, 250):
        for task in tasks:
            interval.keepsUp(task, now)


def test_a_flow_without_twins_ends_by_the_clock(spark: Spark, folders: tuple[Path, Path]) -> None:
    interval = ending(spark, folders[0])

    assert [interval.isOver(END - 1), interval.isOver(END)] == [False, True]


def test_a_twin_that_answers_lets_the_other_end(spark: Spark, folders: tuple[Path, Path]) -> None:
    one, two = folders
    interval = ending(spark, one)
    said(two, END - 1_000)

    assert interval.isOver(END)


def test_while_the_other_is_away_the_end_is_put_off_until_it_is_back(spark: Spark, folders: tuple[Path, Path]) -> None:
    one, two = folders
    interval = ending(spark, one)
    said(two, END - 2_000)  # and nothing since: it was killed

    assert not any(interval.isOver(now) for now in range(END, END + 10_000, 500))
    said(two, END + 9_900)
    assert interval.isOver(END + 10_000)


def test_it_is_put_off_by_an_interval_at_most(spark: Spark, folders: tuple[Path, Path]) -> None:
    one, two = folders
    interval = ending(spark, one)
    said(two, END - EVERY)

    assert not any(interval.isOver(now) for now in range(END, END + EVERY, 500))
    assert interval.isOver(END + EVERY)


def test_a_twin_that_is_away_for_long_is_not_waited_for(spark: Spark, folders: tuple[Path, Path]) -> None:
    one, two = folders
    interval = ending(spark, one)
    said(two, END - 3 * EVERY - AWAY)  # killed, and nobody has begun it again

    assert interval.isOver(END)


def test_a_twin_that_begins_is_away_and_one_that_goes_on_is_not(spark: Spark, folders: tuple[Path, Path]) -> None:
    one, two = folders
    said(one, NOW - 500)
    said(two, NOW - 10 * EVERY)
    for answering in folders:
        ending(spark, answering)

    assert [when(one), when(two)] == [NOW - 500, NOW - AWAY]


def test_all_tasks_end_if_one_does(spark: Spark, folders: tuple[Path, Path]) -> None:
    one, two = folders
    interval = ending(spark, one)
    said(two, END)

    assert interval.isOver(END)
    said(two, END - EVERY)
    assert interval.isOver(END + 1)


def test_of_two_that_would_end_at_once_one_waits(spark: Spark, folders: tuple[Path, Path]) -> None:
    one, two = folders
    first, second = ending(spark, one), ending(spark, two)
    keeps_up(first, NOW, NOW + 39_500)
    keeps_up(second, NOW, NOW + 39_500)

    assert first.isOver(END)
    assert not second.isOver(END)


def test_it_answers_once_all_its_tasks_have_kept_up_for_a_while(spark: Spark, folders: tuple[Path, Path]) -> None:
    one, _ = folders
    interval = ending(spark, one)
    keeps_up(interval, NOW, NOW + 10_000, tasks=(0,))  # the other has not come to the end of the log
    assert when(one) == NOW - AWAY

    keeps_up(interval, NOW + 10_250, NOW + 15_000)
    assert when(one) == NOW - AWAY
    keeps_up(interval, NOW + 15_250, NOW + 15_750)
    assert NOW + 15_000 <= when(one) <= NOW + 15_750


def test_who_falls_behind_has_to_keep_up_for_a_while_again(spark: Spark, folders: tuple[Path, Path]) -> None:
    one, _ = folders
    interval = ending(spark, one)
    keeps_up(interval, NOW, NOW + 6_000)
    before = when(one)

    keeps_up(interval, NOW + 9_000, NOW + 13_000)
    assert when(one) == before
    keeps_up(interval, NOW + 13_250, NOW + 15_000)
    assert when(one) > before


def test_at_its_end_it_says_that_it_is_away(spark: Spark, folders: tuple[Path, Path]) -> None:
    one, two = folders
    interval = ending(spark, one)
    keeps_up(interval, NOW, END - 500)
    said(two, END)

    assert interval.isOver(END)
    keeps_up(interval, END, END + 250)
    assert when(one) == END - AWAY


def test_r5_an_interval_goes_on_while_its_twin_is_away(
    spark: Spark, broker: Broker, topic: str, tmp_path: Path
) -> None:
    event, app, every = visit_on(topic), hr.App(topic), 6
    app.stream(event, disorder="1 min").dedup("visit", within="1 h").to(app.topic(f"{topic}-once"))
    flowing = Flowing(spark, broker, tmp_path, app)
    mine = flowing.checkpoint.answering
    other = mine.parent.with_name(f"{mine.parent.name}~2") / "answering"
    other.parent.mkdir(parents=True)

    with short_batches(spark), running(flowing, f"{every} s") as run:
        flowing.send(event("v1", "p", DAY, 1))
        until(lambda: run.snapshot.batch >= 0, every=0.1)  # an interval has ended
        said(other, int(time() * 1000) - 10_000)
        batch, end = run.snapshot.batch, (time() // every + 1) * every
        until(lambda: time() > end + 1, every=0.1)
        flowing.send(event("v2", "p", DAY + timedelta(seconds=1), 1))
        until(lambda: len(flowing.rows(f"{topic}-once")) == 2, every=0.1)  # rows pass as before
        assert run.snapshot.batch == batch

        def answered() -> bool:
            said(other, int(time() * 1000))
            return run.snapshot.batch > batch

        until(answered, every=0.1)
        mine.touch()
    assert not mine.exists()  # stopped in order: nobody waits for it
