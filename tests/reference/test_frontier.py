"""The watermark of several streams (rules T3, T4)."""

from __future__ import annotations

import headrace as hr
from headrace.model.declared import Read
from headrace.plan.plan import Flow, build
from headrace.reference.frontier import Watermark
from tests.reference.pages import Buy, Visit

SECOND = 1_000_000  # micros


def both(visits: str | None = "5 s", buys: str | None = "5 s") -> Flow:
    """A flow that reads visits (10 s of disorder) and buys (20 s), each idle after so long."""
    app = hr.App("site")
    app.stream(Visit, disorder="10 s", idle=visits).where("spent >= 0").to(app.topic("a"))
    app.stream(Buy, disorder="20 s", idle=buys).where("page <> ''").to(app.topic("b"))
    steps = tuple(step for flow in build(app).flows for step in flow.steps if isinstance(step.node, Read))
    return Flow(name="both", steps=steps, exits=())


def test_t4_the_slowest_stream_counts_each_less_its_own_disorder() -> None:
    watermark = Watermark(both(), 0, {})

    watermark.row("visits", 0, 100 * SECOND, 100_000)
    assert watermark.at(100_000) == 90_000  # buys are idle since 5 s after the start
    watermark.row("buys", 0, 200 * SECOND, 200_000)
    watermark.row("visits", 0, 195 * SECOND, 200_000)

    assert watermark.at(200_000) == 180_000


def test_t4_a_stream_that_has_shown_nothing_holds_time_back_until_it_is_idle() -> None:
    watermark = Watermark(both(), 100_000, {})
    watermark.row("visits", 0, 100 * SECOND, 101_000)

    assert watermark.at(104_999) is None
    assert watermark.at(105_000) == 90_000


def test_t3_a_stream_that_is_never_idle_holds_time_back_for_ever() -> None:
    watermark = Watermark(both(buys=None), 100_000, {})
    watermark.row("visits", 0, 100 * SECOND, 101_000)

    assert watermark.at(10**9) is None


def test_t3_when_all_streams_are_idle_time_runs_on_from_the_greatest_event() -> None:
    watermark = Watermark(both(), 100_000, {})
    watermark.row("visits", 0, 100 * SECOND, 100_000)
    watermark.row("buys", 0, 130 * SECOND, 130_000)

    assert watermark.at(135_000) == 110_000  # 130 s, less the greater disorder
    assert watermark.at(140_000) == 115_000


def test_t4_a_partition_that_comes_back_with_old_rows_does_not_turn_time_back() -> None:
    watermark = Watermark(both(), 100_000, {"visits": 2})
    watermark.row("buys", 0, 200 * SECOND, 200_000)
    watermark.row("visits", 0, 200 * SECOND, 200_000)
    assert watermark.at(200_000) == 180_000  # partition 1 of visits is idle
    watermark.row("visits", 1, 100 * SECOND, 200_000)

    assert watermark.at(200_000) == 180_000


def test_t2_a_row_dated_ahead_of_skew_moves_no_frontier() -> None:
    watermark = Watermark(both(), 100_000, {})
    watermark.row("buys", 0, 100 * SECOND, 100_000)
    watermark.row("visits", 0, 160 * SECOND, 100_000)
    watermark.row("visits", 0, 160 * SECOND + 1, 100_000)

    assert watermark.at(100_000) == 80_000
