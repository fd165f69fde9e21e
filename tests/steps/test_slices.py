"""Tumbling and hopping windows by slices: worked tables, and equal to windows recomputed from all their rows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headrace.steps import slices
from headrace.steps.emission import Policy
from headrace.steps.row import Result, Row
from tests.properties import examples
from tests.steps.driving import COLLECT, COUNT, MIN, Driven, drive, row

MS = 60_000  # a minute in ms


def tumbling(minutes: int, **more: object) -> slices.Spec:
    return slices.Spec(size=minutes * MIN, every=minutes * MIN, aggregates=(COUNT,), **more)  # type: ignore[arg-type]


def test_a_window_closes_when_the_watermark_reaches_its_end() -> None:
    told = drive(slices, tumbling(5), [([row(1 * MIN)], 4 * MS), ([row(4 * MIN)], 5 * MS - 1), ([], 5 * MS)])

    assert told.told == [(0, 5, "final", 0, 2)]


def test_a_row_behind_a_closed_window_corrects_it_within_lateness() -> None:
    spec = tumbling(5, lateness=2 * MIN)

    told = drive(slices, spec, [([row(1 * MIN)], 5 * MS), ([row(2 * MIN, offset=1)], 6 * MS)])

    assert told.told == [(0, 5, "final", 0, 1), (0, 5, "correction", 1, 2)]


def test_several_rows_of_a_batch_make_one_correction() -> None:
    spec = tumbling(5, lateness=2 * MIN)
    behind = [row(n * MIN, offset=n) for n in (2, 3, 4)]

    told = drive(slices, spec, [([row(1 * MIN)], 5 * MS), (behind, 6 * MS)])

    assert told.told[1:] == [(0, 5, "correction", 1, 4)]


def test_the_first_row_of_a_closed_window_within_lateness_makes_its_final() -> None:
    spec = tumbling(5, lateness=2 * MIN)

    told = drive(slices, spec, [([row(7 * MIN)], 6 * MS), ([row(4 * MIN, offset=1)], 6 * MS)])

    assert told.told == [(0, 5, "final", 0, 1)]


def test_a_row_is_late_when_its_window_is_gone() -> None:
    spec = tumbling(5, lateness=2 * MIN)

    told = drive(slices, spec, [([row(1 * MIN)], 7 * MS), ([row(4 * MIN, offset=1)], 7 * MS)])

    assert [r.time for r in told.late] == [4 * MIN]
    assert told.told == [(0, 5, "final", 0, 1)]


def test_a_jump_of_time_over_lateness_still_gives_the_final() -> None:
    told = drive(slices, tumbling(5, lateness=2 * MIN), [([row(1 * MIN)], None), ([], 100 * MS)])

    assert told.told == [(0, 5, "final", 0, 1)]
    assert (told.held, told.used) == (0, 1)


def test_a_row_late_for_one_hopping_window_counts_in_the_other() -> None:
    spec = slices.Spec(size=10 * MIN, every=5 * MIN, aggregates=(COUNT,))

    told = drive(slices, spec, [([row(6 * MIN)], 10 * MS), ([row(7 * MIN, offset=1)], 15 * MS)])

    assert told.told == [(0, 10, "final", 0, 1), (5, 15, "final", 0, 2)]
    assert told.late == []


def test_windows_start_at_the_epoch_plus_offset_also_before_it() -> None:
    spec = slices.Spec(size=5 * MIN, every=5 * MIN, offset=2 * MIN, aggregates=(COUNT,))

    told = drive(slices, spec, [([row(-1 * MIN), row(1 * MIN, offset=1), row(2 * MIN, offset=2)], 60 * MS)])

    assert told.told == [(-3, 2, "final", 0, 2), (2, 7, "final", 0, 1)]


def test_on_change_tells_every_batch_that_changed_the_window_then_the_final() -> None:
    spec = tumbling(5, lateness=2 * MIN, emit=Policy(on_change=True))
    schedule = [([row(1 * MIN)], None), ([], None), ([row(2 * MIN, offset=1)], 3 * MS), ([], 5 * MS),
                ([row(3 * MIN, offset=2)], 6 * MS)]  # fmt: skip

    told = drive(slices, spec, schedule)

    assert told.told == [
        (0, 5, "early", 0, 1),
        (0, 5, "early", 1, 2),
        (0, 5, "final", 2, 2),
        (0, 5, "correction", 3, 3),
    ]


def test_on_change_of_a_batch_that_closes_the_window_is_only_the_final() -> None:
    told = drive(slices, tumbling(5, emit=Policy(on_change=True)), [([row(1 * MIN)], 5 * MS)])

    assert told.told == [(0, 5, "final", 0, 1)]


def test_early_results_keep_their_distance_by_the_clock_and_say_what_came_in_between() -> None:
    spec = tumbling(5, emit=Policy(early=10_000))
    rows = [([row(n, offset=n)], None) for n in range(4)]

    told = drive(slices, spec, rows, clock=[0, 5_000, 9_999, 10_000])

    assert told.told == [(0, 5, "early", 0, 1), (0, 5, "early", 1, 4)]


def test_having_hides_results_and_takes_back_one_that_no_longer_holds() -> None:
    spec = tumbling(5, lateness=5 * MIN, having=True)
    schedule = [([row(1 * MIN)], 5 * MS), ([row(2 * MIN, offset=1)], 6 * MS), ([row(3 * MIN, offset=2)], 7 * MS),
                ([row(3 * MIN, offset=3)], 8 * MS)]  # fmt: skip

    told = drive(slices, spec, schedule, passes=lambda result: result.values[0] in (2, 4))

    assert told.told == [(0, 5, "correction", 0, 2), (0, 5, "retraction", 1, 2), (0, 5, "correction", 2, 4)]


def test_having_takes_a_result_back_only_once() -> None:
    spec = tumbling(5, lateness=5 * MIN, having=True)
    schedule = [([row(n * MIN, offset=n)], (5 + n) * MS) for n in range(4)]

    told = drive(slices, spec, schedule, passes=lambda result: result.values[0] == 1)

    assert told.told == [(0, 5, "final", 0, 1), (0, 5, "retraction", 1, 1)]


def test_what_is_gone_leaves_no_trace() -> None:
    spec, state = slices.Spec(size=10 * MIN, every=5 * MIN, lateness=5 * MIN, aggregates=(COUNT,)), slices.State()
    for minute in range(0, 300, 5):
        slices.step(spec, state, row(minute * MIN), minute * MS)
        slices.on_time(spec, state, minute * MS, 0)

    assert len(state.slices) <= 4
    assert len(state.sent) <= 2


def early_due(emit: Policy, early_at: int | None, clock: int) -> bool:
    return emit.early > 0 and (early_at is None or clock - early_at >= emit.early)


def brute(spec: slices.Spec, schedule: list[tuple[list[Row], int | None]], clock: list[int]) -> Driven:
    """Every window by itself, with a list of its rows; no slices, nothing ever dropped."""
    told, before = Driven(), None
    windows: dict[int, list[Row]] = {}
    sent: dict[int, tuple[int, int, bool, int | None]] = {}  # revision, rows, final, early at
    for number, (rows, watermark) in enumerate(schedule):
        under = None if before is None else before * 1_000
        time = None if watermark is None else watermark * 1_000
        gone = {w for w in windows if under is not None and w + spec.size + spec.lateness <= under}
        for one in sorted(rows, key=lambda r: r.order):
            lowest = (one.time - spec.offset - spec.size) // spec.every * spec.every + spec.offset
            around = [w for w in range(lowest, one.time + 1, spec.every) if w <= one.time < w + spec.size]
            alive = [w for w in around if under is None or w + spec.size + spec.lateness > under]
            if not alive:
                told.late.append(one)
            for w in alive:
                windows.setdefault(w, []).append(one)
        touched = any(one not in told.late for one in rows)
        for w in sorted(windows):
            end, inside = w + spec.size, sorted(windows[w], key=lambda r: r.order)
            if w in gone:
                continue
            revision, counted, final, early_at = sent.get(w, (0, 0, False, None))
            closed, changed = time is not None and end <= time, len(inside) != counted
            kind = ""
            if closed:
                kind = "final" if not final else "correction" if changed else ""
            elif changed and touched and (spec.emit.on_change or early_due(spec.emit, early_at, clock[number])):
                kind = "early"
            if kind:
                values = (len(inside), [r.args[1] for r in inside])
                told.results.append(Result(w, end, kind, revision, values, end - 1, f"{w}/{end}/{revision}"))
                early_at = clock[number] if kind == "early" else early_at
                sent[w] = (revision + 1, len(inside), final or kind != "early", early_at)
        before = watermark
    return told


@st.composite
def schedules(draw: st.DrawFn) -> list[tuple[list[Row], int | None]]:
    """Rows in any order, cut anywhere, under a watermark that only rises."""
    batches, offset, watermark = [], 0, None
    for _ in range(draw(st.integers(1, 7))):
        rows = []
        for _ in range(draw(st.integers(0, 4))):
            rows.append(row(draw(st.integers(-5, 45)) * MIN + draw(st.integers(-1, 1)), offset, offset, aggregates=2))
            offset += 1
        rise = draw(st.sampled_from([None, 0, 1, 3, 9, 40]))
        if rise is not None:
            watermark = (-10 * MS if watermark is None else watermark) + rise * MS
        batches.append((rows, watermark))
    return batches


POLICIES = [Policy(), Policy(on_change=True), Policy(early=10)]


@examples(300)
@given(
    schedules(),
    st.sampled_from([(5, 5), (10, 5), (10, 4), (9, 6), (7, 1)]),
    st.sampled_from([0, 1, 4, 20]),
    st.sampled_from(POLICIES),
    st.integers(0, 3),
    st.lists(st.integers(0, 12), min_size=7, max_size=7),
)
def test_slices_equal_windows_recomputed_from_all_their_rows(
    schedule: list[tuple[list[Row], int | None]],
    shape: tuple[int, int],
    lateness: int,
    emit: Policy,
    offset: int,
    steps: list[int],
) -> None:
    spec = slices.Spec(
        size=shape[0] * MIN,
        every=shape[1] * MIN,
        offset=offset * MIN,
        lateness=lateness * MIN,
        emit=emit,
        aggregates=(COUNT, COLLECT),
    )
    clock = [sum(steps[: n + 1]) for n in range(len(steps))]

    told, wanted = drive(slices, spec, schedule, clock), brute(spec, schedule, clock)

    assert told.results == wanted.results
    assert sorted(told.late) == sorted(wanted.late)
