"""Interval joins: the rules by name, and equal to nested loops over all rows under any schedule."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.steps import interval_join
from headrace.steps.interval_join import LEFT, RIGHT, Joined, Spec
from headrace.steps.row import HELD, LATE, MILLI, USED, Row
from tests.properties import examples

END = 10**12  # ms: after everything
HOWS = ("inner", "left", "right", "full", "semi", "anti")


class Given(NamedTuple):
    row: Row
    side: int


Schedule = list[tuple[list[Given], int | None]]


def left(ms: float, offset: int = 0, key: str | None = "k") -> Given:
    time = round(ms * MILLI)
    return Given(Row(time, (time, 0, 0, offset, ""), (key,), f"l/0/{offset}"), LEFT)


def right(ms: float, offset: int = 0, key: str | None = "k") -> Given:
    time = round(ms * MILLI)
    return Given(Row(time, (time, 1, 0, offset, ""), (key,), f"r/0/{offset}"), RIGHT)


def spec(how: str, lower: float, upper: float, *, unmatched: bool = False) -> Spec:
    """Bounds in ms."""
    return Spec(how=how, lower=round(lower * MILLI), upper=round(upper * MILLI), unmatched=unmatched)


@dataclass
class Driven:
    batches: list[list[Joined]] = field(default_factory=list)
    late: list[Given] = field(default_factory=list)
    used: int = 0
    held: int = 0

    @property
    def causes(self) -> list[list[str]]:
        return [[one.cause for one in batch] for batch in self.batches]


def drive(spec: Spec, schedule: Schedule) -> Driven:
    """One key and the rows without key, as the engines do. Checks conservation after every batch."""
    state, before, told, received = interval_join.State(), None, Driven(), 0
    for rows, watermark in schedule:
        under, before = before, watermark
        out: list[Joined] = []
        received += len(rows)
        for row, side in sorted(rows, key=lambda one: (one.row.order, one.side)):
            if row.args[0] is None:
                verdict, made = interval_join.unkeyed(spec, row, side, under)
            else:
                verdict, made = interval_join.step(spec, state, row, side, under)
            out += made
            told.used += verdict == USED
            told.late += [Given(row, side)] if verdict == LATE else []
            assert verdict in (USED, LATE, HELD)
        due = interval_join.due(spec, state)
        if rows or (due is not None and watermark is not None and due <= watermark):
            alone, used = interval_join.on_time(spec, state, watermark)
            out += alone
            told.used += used
            assert interval_join.on_time(spec, state, watermark) == ([], 0)
            due = interval_join.due(spec, state)
            assert due is None or watermark is None or due > watermark
            assert state.empty == (due is None)  # whatever is held will be dropped
        if state.empty:
            state = interval_join.State()
        told.held = state.held
        assert received == told.used + told.held + len(told.late)
        told.batches.append(out)
    return told


def causes(how: str, lower: float, upper: float, *batches: tuple[list[Given], int | None]) -> list[list[str]]:
    return drive(spec(how, lower, upper), list(batches)).causes


def test_j1_bounds_are_inclusive_on_both_sides() -> None:
    rights = [right(3 - 0.001, 0), right(3, 1), right(10, 2), right(10 + 0.001, 3)]

    assert causes("inner", 3, 10, ([left(0), *rights], None)) == [["l/0/0+r/0/1", "l/0/0+r/0/2"]]
    assert causes("inner", 3, 10, (rights, None), ([left(0)], None))[1] == ["l/0/0+r/0/1", "l/0/0+r/0/2"]


def test_j1_bounds_may_be_negative() -> None:
    rights = [right(89, 0), right(90, 1), right(95, 2), right(96, 3)]

    assert causes("inner", -10, -5, ([*rights, left(100)], None)) == [["l/0/0+r/0/1", "l/0/0+r/0/2"]]


def test_j1_a_row_meets_every_partner_once_whichever_comes_first() -> None:
    told = causes("inner", 0, 10, ([left(1), right(4)], None), ([left(2, 1), right(5, 1)], None))

    assert told == [["l/0/0+r/0/0"], ["l/0/1+r/0/0", "l/0/0+r/0/1", "l/0/1+r/0/1"]]


def test_j2_a_left_row_without_partner_comes_out_when_its_time_is_up() -> None:
    assert causes("left", 0, 10, ([left(5)], 14), ([], 15), ([], 16), ([], END)) == [[], [], ["l/0/0+"], []]


def test_j2_a_right_row_without_partner_comes_out_when_its_time_is_up() -> None:
    assert causes("right", -3, 10, ([right(5)], 7), ([], 8), ([], 9), ([], END)) == [[], [], ["+r/0/0"], []]


def test_j2_micros_count_too() -> None:
    assert causes("left", 0, 0.001, ([left(5)], 5), ([], 6)) == [[], ["l/0/0+"]]
    assert causes("left", 0, 1, ([left(5)], 6), ([], 7)) == [[], ["l/0/0+"]]


def test_j2_a_row_with_a_partner_never_comes_out_alone() -> None:
    assert causes("full", 0, 10, ([left(5), right(6)], None), ([], END)) == [["l/0/0+r/0/0"], []]


def test_j2_rows_alone_come_out_once_in_order_of_both_sides() -> None:
    rows = [left(1, 0), right(100, 0), left(200, 1), right(201, 1), left(400, 2)]

    assert causes("full", 0, 10, (rows, None), ([], END)) == [
        ["l/0/1+r/0/1"],
        ["l/0/0+", "+r/0/0", "l/0/2+"],
    ]


def test_j3_a_row_whose_time_is_up_is_late_even_if_partners_are_held() -> None:
    schedule: Schedule = [([left(5)], 7), ([right(6)], 7), ([], END)]

    told = drive(spec("full", 0, 10), schedule)  # the left row is held until 15, the right one would be until 6

    assert [one.row.cause for one in told.late] == ["r/0/0"]
    assert told.causes == [[], [], ["l/0/0+"]]


def test_j3_a_row_behind_the_watermark_is_not_late_before_its_time_is_up() -> None:
    schedule: Schedule = [([right(17)], 15), ([left(5), left(4, 1)], 15)]

    told = drive(spec("inner", 0, 12), schedule)

    assert told.late == []
    assert told.causes == [[], ["l/0/0+r/0/0"]]
    told = drive(spec("inner", 0, 12), [([right(17)], 17), ([left(5), left(4, 1)], 17)])
    assert [one.row.cause for one in told.late] == ["l/0/1"]


def test_j3_a_row_that_is_on_time_is_never_late_though_the_bounds_exclude_zero() -> None:
    """Right rows lie 5 to 10 before: l.time + upper is past when the left row comes, its partners are held."""
    schedule: Schedule = [([right(92)], 99), ([left(100)], 100), ([left(101, 1)], 102)]

    told = drive(spec("left", -10, -5), schedule)

    assert told.late == []
    assert told.causes == [[], ["l/0/0+r/0/0"], ["l/0/1+r/0/0"]]
    assert drive(spec("left", -10, -5), [([right(80)], 99), ([left(100)], 101)]).causes == [[], ["l/0/0+"]]


def test_j3_an_entry_whose_time_is_up_is_not_seen_though_it_lingers() -> None:
    """The left row at 1 is dropped at 12 by time; nothing wakes an inner join for it. The one at 9 stays until 19."""
    schedule: Schedule = [([left(1), left(9, 1)], 0), ([], 12), ([right(11)], 12)]

    told = drive(spec("inner", -20, 10), schedule)

    assert told.causes == [[], [], ["l/0/1+r/0/0"]]
    assert (told.held, told.used) == (2, 1)


def test_entries_with_nothing_to_tell_wake_their_key_once_for_all_of_them() -> None:
    def due(how: str, *rows: Given) -> int | None:
        state = interval_join.State()
        for row, side in rows:
            interval_join.step(spec(how, 0, 10), state, row, side, None)
        return interval_join.due(spec(how, 0, 10), state)

    assert due("inner", left(1), left(20, 1)) == 31
    assert due("left", left(1), left(20, 1)) == 12
    assert due("left", left(1), right(5), left(20, 1), right(21, 1)) == 31  # both have a partner


def test_j3_what_is_gone_leaves_no_trace() -> None:
    for how in HOWS:
        told = drive(spec(how, -2, 5), [([left(n, n), right(n + 1, n)], n) for n in range(100)])
        assert told.held <= 20


@pytest.mark.parametrize(("how", "alone"), [("inner", 0), ("left", 1), ("full", 1), ("semi", 0), ("anti", 1)])
def test_j6_a_row_without_key_has_no_partner_and_waits_for_none(how: str, alone: int) -> None:
    told = drive(spec(how, 0, 10), [([left(1, key=None), right(1, key="k")], None)])

    assert told.causes == [["l/0/0+"] * alone]
    assert (told.used, told.held) == (1, 1)


def test_j6_a_late_row_without_key_is_late() -> None:
    assert len(drive(spec("left", 0, 10), [([], 12), ([left(1, key=None)], 12)]).late) == 1


def test_a_semi_join_gives_a_left_row_once_and_holds_it_no_longer() -> None:
    schedule: Schedule = [([left(1), right(2), right(3, 1)], None), ([left(1, 1)], None), ([], END)]

    told = drive(spec("semi", 0, 10), schedule)

    assert told.causes == [["l/0/0+"], ["l/0/1+"], []]
    assert [one.time for batch in told.batches for one in batch] == [MILLI, MILLI]
    assert drive(spec("semi", 0, 10), schedule[:2]).held == 2  # the right rows


def test_an_anti_join_gives_left_rows_without_partner_when_their_time_is_up() -> None:
    schedule: Schedule = [([left(1), right(2), left(2, 1), left(20, 2)], None), ([], 30), ([], 31)]

    told = drive(spec("anti", 0, 10), schedule)

    assert told.causes == [[], [], ["l/0/2+"]]


def test_a_self_join_is_two_inputs_and_a_row_meets_itself() -> None:
    order = (5, 0, 0, 7, "")
    both = [Given(Row(5, order, ("k",), "t/0/7"), side) for side in (RIGHT, LEFT)]

    assert causes("full", -10, 10, (both, None), ([], END)) == [["t/0/7+t/0/7"], []]


def test_t6_a_pair_has_the_greater_time_and_a_row_alone_its_own() -> None:
    told = drive(spec("full", -10, 10), [([left(5), right(3), right(50, 1)], None), ([], END)])

    assert [one.time for batch in told.batches for one in batch] == [5 * MILLI, 50 * MILLI]


@pytest.mark.parametrize(
    ("how", "lower", "upper", "hold"),
    [("inner", -3, 10, 0), ("left", -3, 10, 10), ("right", -3, 10, 3), ("full", -3, 10, 10), ("full", -30, 10, 30),
     ("semi", -3, 10, 10), ("anti", -3, 10, 10), ("left", -10, -5, 0), ("right", 5, 10, 0)],
)  # fmt: skip
def test_t6_only_joins_that_give_rows_alone_hold_and_only_their_bound(
    how: str, lower: int, upper: int, hold: int
) -> None:
    assert spec(how, lower, upper).hold == hold * MILLI


def test_the_spec_is_plain_json() -> None:
    assert spec("semi", -1, 2).as_json() == {"step": "interval_join", "how": "semi", "lower": -1000, "upper": 2000,
                                             "unmatched": False}  # fmt: skip


def brute(spec: Spec, schedule: Schedule) -> tuple[list[list[Joined]], list[Given]]:
    """Nested loops over all rows that came so far; nothing is ever dropped, time is only compared."""
    before, late, batches = None, [], []
    came: list[Given] = []
    partners: dict[Given, list[Given]] = {}
    told: set[Given] = set()
    for rows, watermark in schedule:
        under, before = before, watermark
        out: list[Joined] = []
        for one in sorted(rows, key=lambda given: (given.row.order, given.side)):
            if is_up(spec, one, under):
                late.append(one)
                continue
            found = [] if one.row.args[0] is None else [
                other for other in sorted(came, key=lambda given: given.row.order)
                if other.side != one.side and other.row.args[0] is not None
                and not is_up(spec, other, under) and within(spec, one, other)
            ]  # fmt: skip
            if spec.how in ("inner", "left", "right", "full"):
                out += [pair(one, other) for other in found]
            elif spec.how == "semi":
                lefts = [one] if one.side == LEFT and found else [x for x in found if x.side == LEFT]
                out += [alone(x, matched=True) for x in lefts if not partners.get(x)]
            for other in found:
                partners.setdefault(one, []).append(other)
                partners.setdefault(other, []).append(one)
            came.append(one)
            if one.row.args[0] is None and is_outer(spec, one):
                out.append(alone(one))
                told.add(one)
        for one in sorted(came, key=lambda given: (given.row.order, given.side)):
            if is_outer(spec, one) and is_up(spec, one, watermark) and not partners.get(one) and one not in told:
                out.append(alone(one))
                told.add(one)
        batches.append(out)
    return batches, late


def within(spec: Spec, one: Given, other: Given) -> bool:
    on_left, on_right = (one, other) if one.side == LEFT else (other, one)
    return spec.lower <= on_right.row.time - on_left.row.time <= spec.upper


def is_up(spec: Spec, one: Given, watermark: int | None) -> bool:
    """Rules J2 and J3, and never before the row's own time."""
    bound = one.row.time + spec.upper if one.side == LEFT else one.row.time - spec.lower
    return watermark is not None and watermark * MILLI > max(bound, one.row.time)


def is_outer(spec: Spec, one: Given) -> bool:
    if spec.unmatched and (one.side == LEFT or spec.how not in ("semi", "anti")):
        return True
    return spec.how in (("left", "full", "anti") if one.side == LEFT else ("right", "full"))


def pair(one: Given, other: Given) -> Joined:
    on_left, on_right = (one.row, other.row) if one.side == LEFT else (other.row, one.row)
    return Joined(on_left, on_right, max(one.row.time, other.row.time), f"{on_left.cause}+{on_right.cause}", True)


def alone(one: Given, *, matched: bool = False) -> Joined:
    if one.side == LEFT:
        return Joined(one.row, None, one.row.time, f"{one.row.cause}+", matched)
    return Joined(None, one.row, one.row.time, f"+{one.row.cause}", matched)


MOMENTS = st.builds(lambda ms, micros: ms + micros / MILLI, st.integers(-5, 40), st.sampled_from([-1, 0, 0, 1]))
ROWS = st.tuples(st.sampled_from([left, right]), MOMENTS, st.sampled_from(["k", "k", "k", None]))
BOUNDS = st.tuples(
    st.builds(lambda ms, micros: ms + micros / MILLI, st.integers(-12, 12), st.sampled_from([-1, 0, 1])),
    st.builds(lambda ms, micros: ms + micros / MILLI, st.integers(0, 15), st.sampled_from([0, 1])),
).map(lambda pair: (pair[0], pair[0] + pair[1]))


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    """Rows in any order, cut anywhere, under a watermark that only rises."""
    batches: Schedule = []
    offset, watermark = 0, None
    for _ in range(draw(st.integers(1, 7))):
        rows = []
        for make, moment, key in draw(st.lists(ROWS, max_size=5)):
            rows.append(make(moment, offset, key))
            offset += 1
        rise = draw(st.sampled_from([None, 0, 1, 3, 9, 30]))
        if rise is not None:
            watermark = (-8 if watermark is None else watermark) + rise
        batches.append((rows, watermark))
    return batches


@examples(200)
@given(schedules(), st.sampled_from(HOWS), BOUNDS, st.booleans())
def test_joins_equal_nested_loops_over_all_rows(
    schedule: Schedule, how: str, bounds: tuple[float, float], unmatched: bool
) -> None:
    join = spec(how, *bounds, unmatched=unmatched)

    told = drive(join, [*schedule, ([], END)])

    batches, late = brute(join, [*schedule, ([], END)])
    assert told.batches == batches
    assert told.late == late
    assert told.held == 0


@st.composite
def on_time_rows(draw: st.DrawFn) -> tuple[list[Given], int]:
    """Rows in an order of arrival that stays within the disorder, which is given too, in ms."""
    disorder = draw(st.integers(0, 12))
    rows = [make(moment, offset, key) for offset, (make, moment, key) in enumerate(draw(st.lists(ROWS, max_size=20)))]
    delay = {one: draw(st.integers(0, disorder * MILLI)) for one in rows}
    return sorted(rows, key=lambda one: one.row.time + delay[one]), disorder


def cut(rows: list[Given], disorder: int, ends: list[int]) -> Schedule:
    """Batches that end after so many rows, under W = frontier - disorder; then the end of input."""
    schedule: Schedule = []
    start = 0
    for end in [*sorted(ends), len(rows)]:
        frontier = max((one.row.time for one in rows[:end]), default=None)
        schedule.append((rows[start:end], None if frontier is None else frontier // MILLI - disorder))
        start = end
    return [*schedule, ([], END)]


@examples(200)
@given(on_time_rows(), st.sampled_from(HOWS), BOUNDS, st.data())
def test_r4_when_no_row_is_behind_every_schedule_gives_the_join_of_all_rows(
    arrived: tuple[list[Given], int], how: str, bounds: tuple[float, float], data: st.DataObject
) -> None:
    rows, disorder = arrived
    join = spec(how, *bounds)
    keyed = [one for one in rows if one.row.args[0] is not None]
    pairs = [(a, b) for a in keyed for b in keyed if a.side == LEFT and b.side == RIGHT and within(join, a, b)]
    matched = {one for both in pairs for one in both}
    wanted = [pair(*both) for both in pairs] if how not in ("semi", "anti") else []
    wanted += [alone(one) for one in rows if is_outer(join, one) and one not in matched]
    wanted += [alone(one, matched=True) for one in rows if how == "semi" and one.side == LEFT and one in matched]

    row_by_row = cut(rows, disorder, list(range(1, len(rows))))
    some = cut(rows, disorder, data.draw(st.lists(st.integers(0, len(rows)), max_size=5)))

    for schedule in (row_by_row, some, [(rows, END)]):
        told = drive(join, schedule)
        assert Counter(one for batch in told.batches for one in batch) == Counter(wanted)
        assert told.late == []
        before = None
        for (_, watermark), batch in zip(schedule, told.batches, strict=True):
            # Rule T6: less the hold, what comes out is on time for the next step.
            assert all(before is None or one.time >= before * MILLI - join.hold for one in batch)
            before = watermark
