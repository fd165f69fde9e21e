"""Rules R1-R4: a run is a schedule, and what may depend on it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.base.clock import from_micros
from headrace.base.errors import UsageError
from headrace.plan.plan import Plan, build
from headrace.reference.batch import Arrival, Batch
from headrace.reference.engine import Engine, run
from headrace.steps.row import END
from tests.properties import examples
from tests.reference.pages import Buy, Visit, site, told, visit

MIN = 60_000_000
START = 1_793_664_000_000_000  # 2026-11-03 00:00, micros


def test_r1_rows_are_applied_under_the_watermark_before_them() -> None:
    """Both rows come in one batch that moves time past the window: neither is late, and one final has both."""
    with hr.testing.run(site(hr.tumbling("5 min"))) as t:
        t.batch(visit(t, "10:01"), visit(t, "10:20"), visit(t, "10:02"))

        assert told(t) == [("10:00", "10:05", "final", 0, 2)]
        assert t.counts("counted").late == 0


def test_r1_then_time_moves_and_everything_due_fires_in_order() -> None:
    with hr.testing.run(site(hr.hopping("10 min", every="5 min"))) as t:
        t.send(visit(t, "10:01"), visit(t, "11:00"))

        assert [row[:2] for row in told(t)] == [("09:55", "10:05"), ("10:00", "10:10")]


def test_r2_order_inside_a_batch_is_time_topic_partition_offset() -> None:
    app = hr.App("site")
    visits = app.stream(Visit, disorder="1 h")
    windows = visits.window(hr.tumbling("1 h"), lateness="0 s")
    windows.agg(seen=hr.collect("spent"), first=hr.first("spent"), last=hr.last("spent")).to(app.topic("out"))
    with hr.testing.run(app, partitions=2) as t:
        t.batch(Visit("p", t.time("10:30"), 4), Visit("p", t.time("10:10"), 2))
        t.batch(Visit("p", t.time("10:30"), 5), partition=1)
        t.batch(Visit("p", t.time("10:10"), 1), Visit("p", t.time("10:20"), 3))
        t.end()

        (row,) = t.read("out", "seen, first, last")
        assert row == {"seen": [2, 1, 3, 4, 5], "first": 2, "last": 5}


def test_r3_by_default_each_row_is_a_batch_and_time_moves_right_after_it() -> None:
    with hr.testing.run(site(hr.tumbling("5 min"))) as t:
        t.send(visit(t, "10:01"), visit(t, "10:20"), visit(t, "10:02"))

        assert told(t) == [("10:00", "10:05", "final", 0, 1)]
        assert t.counts("counted").late == 1


def test_r3_the_same_schedule_gives_the_same_records() -> None:
    plan = build(site(hr.session(gap="5 min"), lateness="10 min"))
    schedule = [_batch([(1, "a"), (3, "b")], 2), _batch([(9, "a"), (5, "a")], 9), Batch([], END, 0)]

    assert run(plan, schedule) == run(plan, schedule)


def test_a_plan_of_several_flows_needs_a_schedule_for_each() -> None:
    app = site(hr.tumbling("5 min"))
    app.stream(Buy, disorder="0 s").where("page <> ''").to(app.topic("bought"))
    plan = build(app)

    with pytest.raises(UsageError, match="2 flows"):
        run(plan, [])
    buy = Batch([Arrival(START, 0, 0, 0, ("p", from_micros(START)))], None, START // 1_000)
    assert [record.topic for record in run(plan, {"buys": [buy]})] == ["bought"]


def _batch(rows: list[tuple[int, str]], watermark: int) -> Batch:
    """Rows of (minute, page); offsets follow the minute, which is enough to tell them apart here."""
    arrivals = [Arrival(START + m * MIN, 0, 0, m, (page, from_micros(START + m * MIN), m)) for m, page in rows]
    return Batch(arrivals, START // 1_000 + watermark * 60_000, END)


WINDOWS = {
    "tumbling": hr.tumbling("5 min"),
    "hopping": hr.hopping("10 min", every="4 min"),
    "session": hr.session(gap="4 min"),
    "sliding": hr.sliding("6 min"),
}
PLANS = {(name, lateness): build(site(window, lateness=lateness)) for name, window in WINDOWS.items()
         for lateness in ("0 s", "2 min", "60 min")}  # fmt: skip


def fine(rows: list[tuple[int, str]], disorder: int) -> list[Batch]:
    """One row per batch, W = greatest time - disorder."""
    batches, top = [], 0
    for offset, (minute, page) in enumerate(rows):
        top = max(top, minute)
        at = START + minute * MIN
        arrival = Arrival(at, 0, 0, offset, (page, from_micros(at), minute))
        batches.append(Batch([arrival], START // 1_000 + (top - disorder) * 60_000, END))
    return batches


def coarse(batches: list[Batch], cuts: list[int]) -> list[Batch]:
    """The same rows, several batches made one; the watermark after it is that of its last."""
    edges = sorted({0, len(batches), *(cut % (len(batches) + 1) for cut in cuts)})
    groups = [batches[a:b] for a, b in pairwise(edges)]
    return [Batch([row for batch in group for row in batch.rows], group[-1].watermark, END) for group in groups]


def finished(plan: Plan, batches: list[Batch]) -> Engine:
    """Runs to the end of input. Conservation is checked by the engine itself, in every batch."""
    engine = Engine(plan, plan.flows[0], keep_aside=True)
    for batch in [*batches, Batch([], END, END)]:
        engine.batch(batch)
    counts = engine.counts()["counted"]
    assert counts.held == 0
    assert counts.received == counts.used + counts.late
    return engine


def last_revisions(engine: Engine) -> dict[Any, Any]:
    """Per key and window the last result that stands. Sliding windows of equal times are told apart by their count."""
    standing: dict[Any, Any] = {}
    for record in engine.records:
        page, start, end, kind, _, times = record.values
        if record.topic != "out":
            continue
        if kind == "retraction":
            del standing[page, start, end]
        else:
            standing[page, start, end] = times
    return standing


ROWS = st.lists(st.tuples(st.integers(0, 40), st.sampled_from("ab")), min_size=1, max_size=14)
CUTS = st.lists(st.integers(0, 14), max_size=5)


@examples(120)
@given(ROWS, CUTS)
@pytest.mark.parametrize("window", ["tumbling", "hopping", "session"])
def test_r4_without_late_rows_the_last_revision_is_the_same_under_every_schedule(
    window: str, rows: list[tuple[int, str]], cuts: list[int]
) -> None:
    """Lateness is longer than the whole of time here, so that no row is late for any of its windows."""
    plan, one_by_one = PLANS[window, "60 min"], fine(rows, disorder=3)

    steps, whole = finished(plan, one_by_one), finished(plan, coarse(one_by_one, cuts))

    assert not steps.aside
    assert last_revisions(whole) == last_revisions(steps)


@examples(120)
@given(ROWS, CUTS)
def test_r4_the_same_for_sliding_windows(rows: list[tuple[int, str]], cuts: list[int]) -> None:
    """One window per row: the last revision of each row's own window, known by the row behind the result."""
    plan, one_by_one = PLANS["sliding", "60 min"], fine(rows, disorder=3)

    def last(engine: Engine) -> dict[Any, Any]:
        found: dict[Any, list[Any]] = {}
        for record in engine.records:
            page, start, end, _, revision, times = record.values
            found.setdefault((page, start, end), []).append((revision, times))
        # rows of one time have windows of equal bounds, but counts that differ by one
        return {bounds: max(times for _, times in told) for bounds, told in found.items()}

    assert last(finished(plan, coarse(one_by_one, cuts))) == last(finished(plan, one_by_one))


@examples(120)
@given(ROWS, CUTS, st.sampled_from(["0 s", "2 min"]))
@pytest.mark.parametrize("window", list(WINDOWS))
def test_r4_a_coarser_cut_may_rescue_a_row_but_never_loses_one(
    window: str, rows: list[tuple[int, str]], cuts: list[int], lateness: str
) -> None:
    plan, one_by_one = PLANS[window, lateness], fine(rows, disorder=1)

    def late(batches: list[Batch]) -> set[Any]:
        return {row.order for row in finished(plan, batches).aside.get(("counted", "late"), [])}

    assert late(coarse(one_by_one, cuts)) <= late(one_by_one)
