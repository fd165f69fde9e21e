"""Sliding windows: worked tables, and equal to every row's window recomputed from all rows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headrace.steps import sliding
from headrace.steps.row import Result, Row
from tests.properties import examples
from tests.steps.driving import COLLECT, COUNT, MAX, MIN, SUM, Driven, drive, row
from tests.steps.test_slices import MS, schedules


def back(minutes: int, **more: object) -> sliding.Spec:
    return sliding.Spec(size=minutes * MIN, aggregates=(COUNT,), **more)  # type: ignore[arg-type]


def test_every_row_looks_back_over_its_own_window() -> None:
    rows = [row(0), row(4 * MIN, offset=1), row(5 * MIN, offset=2), row(20 * MIN, offset=3)]

    told = drive(sliding, back(5), [(rows, 60 * MS)])

    assert told.told == [
        (-5, 0, "final", 0, 1),
        (-1, 4, "final", 0, 2),
        (0, 5, "final", 0, 2),  # the row at 0 is five minutes back: outside
        (15, 20, "final", 0, 1),
    ]


def test_a_result_waits_until_the_watermark_has_passed_the_row() -> None:
    assert drive(sliding, back(5), [([row(1 * MIN)], 1 * MS)]).told == []
    assert drive(sliding, back(5), [([row(1 * MIN)], 1 * MS + 1)]).told == [(-4, 1, "final", 0, 1)]


def test_rows_of_equal_time_count_in_order() -> None:
    told = drive(sliding, back(5), [([row(0, offset=1), row(0, offset=0)], 1 * MS)])

    assert [(r.cause, r.values) for r in told.results] == [("t/0/0/0", (1,)), ("t/0/1/0", (2,))]


def test_a_row_behind_corrects_the_results_it_belongs_to() -> None:
    schedule = [([row(4 * MIN), row(9 * MIN, offset=1)], 10 * MS), ([row(3 * MIN, offset=2)], 10 * MS)]

    told = drive(sliding, back(5, lateness=10 * MIN), schedule)

    assert told.told[2:] == [(-2, 3, "final", 0, 1), (-1, 4, "correction", 1, 2)]


def test_a_row_is_late_when_its_own_window_is_gone() -> None:
    schedule = [([row(9 * MIN)], 10 * MS), ([row(8 * MIN, offset=1), row(8 * MIN - 1, offset=2)], 10 * MS)]

    told = drive(sliding, back(5, lateness=2 * MIN), schedule)

    assert [r.time for r in told.late] == [8 * MIN - 1]


def brute(spec: sliding.Spec, schedule: list[tuple[list[Row], int | None]]) -> Driven:
    """Every row's window from all rows accepted so far; nothing is dropped."""
    told, before = Driven(), None
    kept: list[Row] = []
    sent: dict[Row, tuple[int, tuple[object, ...]]] = {}
    for rows, watermark in schedule:
        under = None if before is None else before * 1_000
        time = None if watermark is None else watermark * 1_000
        for one in sorted(rows, key=lambda r: r.order):
            is_late = under is not None and one.time + spec.lateness < under
            (told.late if is_late else kept).append(one)
        kept.sort(key=lambda r: r.order)
        for at, one in enumerate(kept):
            inside = [r for r in kept[: at + 1] if r.time > one.time - spec.size]
            numbers = [r.args[0] for r in inside]
            values = (len(inside), sum(numbers), max(numbers), numbers)
            revision, shown = sent.get(one, (0, None))
            gone = under is not None and one.time + spec.lateness < under
            if time is not None and one.time < time and values != shown and not gone:
                kind = "correction" if revision else "final"
                cause = f"{one.cause}/{revision}"
                told.results.append(Result(one.time - spec.size, one.time, kind, revision, values, one.time, cause))
                sent[one] = (revision + 1, values)
        before = watermark
    return told


@examples(300)
@given(schedules(), st.sampled_from([1, 5, 12]), st.sampled_from([0, 3, 30]), st.booleans())
def test_sliding_equals_windows_recomputed_from_all_rows(
    schedule: list[tuple[list[Row], int | None]], size: int, lateness: int, removable: bool
) -> None:
    """Both ways of running: with removal (count, sum) and with two stacks (max, collect)."""
    aggregates = (COUNT, SUM) if removable else (COUNT, SUM, MAX, COLLECT)
    spec = sliding.Spec(size=size * MIN, lateness=lateness * MIN, aggregates=aggregates)
    given = [([r._replace(args=(r.args[0],) * len(aggregates)) for r in rows], w) for rows, w in schedule]
    assert spec.tally.removable is removable

    told, wanted = drive(sliding, spec, given), brute(spec, given)

    shown = [r._replace(values=r.values[: len(aggregates)]) for r in wanted.results]
    assert told.results == shown
    assert sorted(told.late) == sorted(wanted.late)
