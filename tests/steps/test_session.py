"""Session windows: worked tables, and equal to sessions clustered anew from all rows after every row."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headrace.steps import session
from headrace.steps.emission import Policy
from headrace.steps.row import Result, Row
from tests.properties import examples
from tests.steps.driving import COLLECT, COUNT, MIN, Driven, drive, row
from tests.steps.test_slices import MS, POLICIES, early_due, schedules


def sessions(gap: int = 10, **more: object) -> session.Spec:
    return session.Spec(gap=gap * MIN, aggregates=(COUNT,), **more)  # type: ignore[arg-type]


def test_rows_less_than_gap_apart_share_a_session() -> None:
    rows = [row(0), row(9 * MIN, offset=1), row(19 * MIN, offset=2)]

    told = drive(session, sessions(), [(rows, 60 * MS)])

    assert told.told == [(0, 19, "final", 0, 2), (19, 29, "final", 0, 1)]


def test_a_bridging_row_merges_two_sessions_and_takes_their_results_back() -> None:
    schedule = [([row(0), row(18 * MIN, offset=1)], 30 * MS), ([row(9 * MIN, offset=2)], 31 * MS)]

    told = drive(session, sessions(lateness=60 * MIN), schedule)

    assert told.told == [
        (0, 10, "final", 0, 1),
        (18, 28, "final", 0, 1),
        (0, 10, "retraction", 1, 1),
        (18, 28, "retraction", 1, 1),
        (0, 28, "final", 0, 3),
    ]


def test_a_row_inside_a_closed_session_corrects_it_without_moving_its_bounds() -> None:
    schedule = [([row(0), row(9 * MIN, offset=1)], 30 * MS), ([row(5 * MIN, offset=2)], 31 * MS)]

    told = drive(session, sessions(lateness=60 * MIN), schedule)

    assert told.told == [(0, 19, "final", 0, 2), (0, 19, "correction", 1, 3)]


def test_a_row_that_extends_a_session_takes_back_its_early_result() -> None:
    schedule = [([row(0)], None), ([row(5 * MIN, offset=1)], None), ([], 30 * MS)]

    told = drive(session, sessions(emit=Policy(on_change=True)), schedule)

    assert told.told == [
        (0, 10, "early", 0, 1),
        (0, 10, "retraction", 1, 1),
        (0, 15, "early", 0, 2),
        (0, 15, "final", 1, 2),
    ]


def test_a_row_that_touches_a_session_still_held_is_not_late() -> None:
    schedule = [([row(20 * MIN)], 25 * MS), ([row(12 * MIN, offset=1), row(1 * MIN, offset=2)], 25 * MS)]

    told = drive(session, sessions(), schedule)

    assert [r.time for r in told.late] == [1 * MIN]
    assert told.held == 2


def test_a_batch_keeps_a_row_that_its_own_younger_row_takes_in() -> None:
    one_by_one = [([], 25 * MS), ([row(20 * MIN)], 25 * MS), ([row(12 * MIN, offset=1)], 25 * MS)]
    together = [([], 25 * MS), ([row(20 * MIN), row(12 * MIN, offset=1)], 25 * MS)]

    assert drive(session, sessions(), one_by_one).late == []
    assert drive(session, sessions(), together).late == []


def test_an_early_result_waits_for_a_batch_with_a_row_of_its_key() -> None:
    """Time closes the first session at clock 20; the second has an untold row, but this batch brings it none."""
    schedule = [
        ([row(0), row(30 * MIN, offset=1), row(32 * MIN, offset=2)], None),
        ([row(31 * MIN, offset=3)], None),
        ([], 15 * MS),
        ([row(31 * MIN, offset=4)], 15 * MS),
    ]

    told = drive(session, sessions(emit=Policy(early=10)), schedule, clock=[0, 5, 20, 25])

    assert told.told == [
        (0, 10, "early", 0, 1),
        (30, 42, "early", 0, 2),
        (0, 10, "final", 1, 1),
        (30, 42, "early", 1, 4),
    ]


def clusters(rows: list[Row], gap: int) -> list[list[Row]]:
    found: list[list[Row]] = []
    for one in sorted(rows, key=lambda r: r.order):
        if found and one.time < found[-1][-1].time + gap:
            found[-1].append(one)
        else:
            found.append([one])
    return found


def brute(spec: session.Spec, schedule: list[tuple[list[Row], int | None]], clock: list[int]) -> Driven:
    """All rows of sessions not gone, clustered anew after every row; a session is its bounds."""
    told, before = Driven(), None
    kept: list[Row] = []
    sent: dict[tuple[int, int], tuple[int, int, bool, int | None, tuple[object, ...] | None]] = {}
    for number, (rows, watermark) in enumerate(schedule):
        under = None if before is None else before * 1_000
        time = None if watermark is None else watermark * 1_000
        retracted: list[Result] = []

        def bounds(cluster: list[Row]) -> tuple[int, int]:
            return cluster[0].time, cluster[-1].time + spec.gap

        def accept(one: Row, under: int | None = under, retracted: list[Result] = retracted) -> bool:
            mine = next(c for c in clusters([*kept, one], spec.gap) if one in c)
            if under is not None and bounds(mine)[1] + spec.lateness <= under:
                return False
            kept.append(one)
            alive = {bounds(c) for c in clusters(kept, spec.gap)}
            for old in sorted(set(sent) - alive):
                revision, _, _, _, shown = sent.pop(old)
                if shown is not None:
                    cause = f"{old[0]}/{old[1]}/{revision}"
                    retracted.append(Result(*old, "retraction", revision, shown, old[1] - 1, cause))
            return True

        ordered = sorted(rows, key=lambda r: r.order)
        late = [one for one in ordered if not accept(one)]
        told.late += [one for one in reversed(late) if not accept(one)]
        told.results += retracted
        touched = len(late) < len(rows) or any(one in kept for one in late)
        for cluster in clusters(kept, spec.gap):
            start, end = bounds(cluster)
            revision, counted, final, early_at, _ = sent.get((start, end), (0, 0, False, None, None))
            closed, changed = time is not None and end <= time, len(cluster) != counted
            kind = ""
            if closed:
                kind = "final" if not final else "correction" if changed else ""
            elif changed and touched and (spec.emit.on_change or early_due(spec.emit, early_at, clock[number])):
                kind = "early"
            if kind:
                values = (len(cluster), [r.args[1] for r in cluster])
                cause = f"{start}/{end}/{revision}"
                told.results.append(Result(start, end, kind, revision, values, end - 1, cause))
                early_at = clock[number] if kind == "early" else early_at
                sent[start, end] = (revision + 1, len(cluster), final or kind != "early", early_at, values)
            if time is not None and end + spec.lateness <= time:
                sent.pop((start, end), None)
                for one in cluster:
                    kept.remove(one)
        before = watermark
    return told


@examples(300)
@given(
    schedules(),
    st.sampled_from([1, 4, 10]),
    st.sampled_from([0, 2, 30]),
    st.sampled_from(POLICIES),
    st.lists(st.integers(0, 12), min_size=7, max_size=7),
)
def test_sessions_equal_clusters_of_all_rows(
    schedule: list[tuple[list[Row], int | None]], gap: int, lateness: int, emit: Policy, steps: list[int]
) -> None:
    spec = session.Spec(gap=gap * MIN, lateness=lateness * MIN, emit=emit, aggregates=(COUNT, COLLECT))
    clock = [sum(steps[: n + 1]) for n in range(len(steps))]

    told, wanted = drive(session, spec, schedule, clock), brute(spec, schedule, clock)

    assert told.results == wanted.results
    assert sorted(told.late) == sorted(wanted.late)
