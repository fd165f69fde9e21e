"""Enrich as of the row's time: the rules by name, and equal to a linear scan over all versions."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.steps import as_of
from headrace.steps.as_of import Spec
from headrace.steps.row import HELD, LATE, MILLI, USED, Row
from headrace.steps.version import Enriched, Version
from tests.properties import examples

END = 10**12  # ms: after everything

Schedule = list[tuple[list[Row | Version], int | None]]


def row(ms: float, offset: int = 0) -> Row:
    time = round(ms * MILLI)
    return Row(time, (time, 0, 0, offset, ""), (), f"t/0/{offset}")


def version(ms: float, value: str | None, offset: int = 0) -> Version:
    """`value` None: a tombstone."""
    return Version((round(ms * MILLI), 1, 0, offset, ""), None if value is None else (value,))


def spec(history: float, wait: bool = True, ttl: float = 0) -> Spec:
    return Spec(history=round(history * MILLI), wait=wait, ttl=round(ttl * MILLI))


@dataclass
class Driven:
    batches: list[list[Enriched]] = field(default_factory=list)
    late: list[Row] = field(default_factory=list)
    used: int = 0
    held: int = 0
    versions: int = 0

    @property
    def answers(self) -> list[list[str | None]]:
        return [[None if one.values is None else one.values[0] for one in batch] for batch in self.batches]


def drive(spec: Spec, schedule: Schedule) -> Driven:
    """One key, as the engines do. Checks conservation after every batch."""
    state, before, told, received = as_of.State(), None, Driven(), 0
    for rows, watermark in schedule:
        under, before = before, watermark
        out: list[Enriched] = []
        received += len(rows)
        for one in sorted(rows, key=lambda given: given.order):
            if isinstance(one, Version):
                verdict, made = as_of.learn(spec, state, one), []
            else:
                verdict, made = as_of.step(spec, state, one, under)
                told.late += [one] if verdict == LATE else []
            out += made
            told.used += verdict == USED
            assert verdict in (USED, LATE, HELD)
        due = as_of.due(spec, state)
        if rows or (due is not None and watermark is not None and due <= watermark):
            made, used = as_of.on_time(spec, state, watermark)
            out += made
            told.used += used
            assert as_of.on_time(spec, state, watermark) == ([], 0)
            due = as_of.due(spec, state)
            assert due is None or watermark is None or due > watermark
        if state.empty:
            state = as_of.State()
        told.held, told.versions = state.held, len(state.versions)
        assert received == told.used + told.held + len(told.late)
        told.batches.append(out)
    return told


def test_j4_the_version_valid_at_the_rows_time_answers() -> None:
    table = [version(10, "a"), version(20, "b", 1)]
    rows = [row(ms, n) for n, ms in enumerate([9.999, 10, 19.999, 20, 99])]

    assert drive(spec(100), [([*table, *rows], END)]).answers == [[None, "a", "a", "b", "b"]]


def test_j4_of_versions_with_equal_time_the_later_offset_answers() -> None:
    table = [version(10, "late", 2), version(10, "early", 1)]

    assert drive(spec(100), [([*table, row(10)], END)]).answers == [["late"]]


def test_j4_a_row_waits_until_the_watermark_has_passed_it() -> None:
    schedule: Schedule = [([version(1, "a"), row(10)], 10), ([version(9, "b", 1)], 10), ([], 11)]

    told = drive(spec(100), schedule)

    assert told.answers == [[], [], ["b"]]
    assert drive(spec(100), schedule[:2]).held == 1


def test_j4_without_wait_a_row_takes_what_is_there() -> None:
    schedule: Schedule = [([version(1, "a"), row(10)], None), ([version(9, "b", 1), row(10, 1)], None)]

    assert drive(spec(100, wait=False), schedule).answers == [["a"], ["b"]]


def test_j4_a_later_version_does_not_revise() -> None:
    schedule: Schedule = [([row(10)], 11), ([version(9, "b")], 11), ([row(10, 1)], 12)]

    assert drive(spec(100), schedule).answers == [[None], [], ["b"]]


def test_j4_rows_come_out_in_order_though_they_came_in_another() -> None:
    told = drive(spec(100), [([row(12, 1)], 5), ([row(11, 2), row(12, 0)], 13)])

    assert [one.row.cause for one in told.batches[1]] == ["t/0/2", "t/0/0", "t/0/1"]


def test_j4_history_keeps_versions_and_the_newest_before_it() -> None:
    table = [version(ms, str(ms), ms) for ms in (10, 20, 30, 40)]

    assert drive(spec(15), [(table, 35)]).versions == 3  # 20 is the newest that a row at 20 may need
    assert drive(spec(15), [(table, 34)]).versions == 4
    assert drive(spec(15), [(table, END)]).versions == 1
    assert drive(spec(15), [([version(10, "a"), version(20.001, "b", 1)], 35), ([row(20)], 35)]).answers[1] == ["a"]
    assert drive(spec(15), [(table, 35), ([row(20), row(29.999, 1), row(30, 2)], 45)]).answers[1] == ["20", "20", "30"]


def test_j4_a_key_that_nobody_asks_keeps_only_its_newest_version_in_the_end() -> None:
    table = [version(ms, str(ms), ms) for ms in (10, 20, 30, 40)]

    assert drive(spec(15), [(table, None), ([], 54), ([], 55)]).versions == 1


def test_j4_a_row_older_than_the_history_is_late() -> None:
    schedule: Schedule = [([version(1, "a")], 50), ([row(40), row(39.999, 1)], 50)]

    told = drive(spec(10), schedule)

    assert [one.cause for one in told.late] == ["t/0/1"]
    assert told.answers == [[], ["a"]]


def test_j4_a_tombstone_answers_nothing_from_its_time_on() -> None:
    table = [version(10, "a"), version(20, None, 1), version(30, "b", 2)]

    told = drive(spec(100), [([*table, row(15), row(20, 1), row(25, 2), row(30, 3)], 50), ([], END)])

    assert told.answers == [["a", None, None, "b"], []]


def test_j4_a_deletion_is_remembered_as_long_as_the_history() -> None:
    assert drive(spec(10), [([version(10, None)], 19), ([version(5, "a", 1), row(20)], 21)]).answers[1] == [None]
    assert drive(spec(10), [([version(10, None)], 19)]).versions == 1
    assert drive(spec(10), [([version(10, None)], 20)]).versions == 0


def test_j7_a_version_answers_until_its_ttl_is_over_by_the_rows_own_time() -> None:
    table = [version(10, "a"), version(25, "b", 1)]
    rows = [row(ms, n) for n, ms in enumerate([10, 24.999, 25, 54.999, 55, 70])]

    assert drive(spec(100, ttl=30), [([*table, *rows], END)]).answers == [["a", "a", "b", "b", None, None]]
    at_once = drive(spec(100, wait=False, ttl=30), [(table, None), (rows, None)])
    assert at_once.answers[1] == ["a", "a", "b", "b", None, None]
    gap = [version(10, "a"), version(50, "b", 1), row(39.999), row(40, 1), row(50, 2)]
    assert drive(spec(100, ttl=30), [(gap, END)]).answers == [["a", None, "b"]]


def test_j7_answers_do_not_depend_on_the_cut() -> None:
    events = [version(10, "a"), row(30), row(39.999, 1), row(40, 2), row(45, 3)]
    one_by_one: Schedule = [([one], round(one.order[0] / MILLI) - 10) for one in events]

    told = drive(spec(100, ttl=30), [*one_by_one, ([], END)])

    assert [one for batch in told.answers for one in batch] == ["a", "a", None, None]


def test_j7_what_no_row_can_ask_for_is_dropped() -> None:
    table: Schedule = [([version(10, "a"), version(20, "b", 1)], 30)]

    assert drive(spec(5, ttl=30), [*table, ([], 54)]).versions == 1
    assert drive(spec(5, ttl=30), [*table, ([], 55)]).versions == 0  # a row at 50 is the oldest that is not late
    assert drive(spec(5, ttl=3), [([version(10, "a"), version(20, "b", 1)], 18)]).versions == 1


def test_j6_an_older_version_that_comes_late_enters_the_history_only() -> None:
    schedule: Schedule = [([version(20, "b")], 25), ([version(10, "a", 1), row(15), row(25, 1)], 26)]

    assert drive(spec(100), schedule).answers == [[], ["a", "b"]]


def test_j6_a_row_without_key_meets_no_version() -> None:
    assert as_of.unkeyed(spec(10), row(5), 15) == (USED, [Enriched(row(5), None)])
    assert as_of.unkeyed(spec(10), row(5), 16) == (LATE, [])


def test_the_spec_is_plain_json() -> None:
    assert spec(1, wait=False).as_json() == {"step": "as_of", "history": 1000, "wait": False, "ttl": 0}


def scan(versions: list[Version], time: int, ttl: int = 0) -> tuple[object, ...] | None:
    found: Version | None = None
    for one in versions:
        if one.order[0] <= time and (found is None or one.order > found.order):
            found = one
    if found is None or (ttl and found.time + ttl <= time):
        return None
    return found.values


def brute(spec: Spec, schedule: Schedule) -> tuple[list[list[Enriched]], list[Row]]:
    """Every row by a linear scan over all versions that came before its answer; nothing is dropped."""
    batches, late, before = [], [], None
    waiting: list[Row] = []
    versions: list[Version] = []
    for rows, watermark in schedule:
        under, before = before, watermark
        out = []
        for one in sorted(rows, key=lambda given: given.order):
            if isinstance(one, Version):
                versions.append(one)
            elif under is not None and one.time < under * MILLI - spec.history:
                late.append(one)
            elif spec.wait:
                waiting.append(one)
            else:
                out.append(Enriched(one, scan(versions, one.time, spec.ttl)))
        for one in sorted(waiting, key=lambda given: given.order):
            if watermark is not None and one.time < watermark * MILLI:
                out.append(Enriched(one, scan(versions, one.time, spec.ttl)))
                waiting.remove(one)
        batches.append(out)
    return batches, late


MOMENTS = st.builds(lambda ms, micros: ms + micros / MILLI, st.integers(-5, 40), st.sampled_from([-1, 0, 0, 1]))


@st.composite
def schedules(draw: st.DrawFn, history: int) -> Schedule:
    """Rows of any time; versions behind by no more than the history, since a deletion is remembered no longer."""
    batches: Schedule = []
    offset, before = 0, None
    for _ in range(draw(st.integers(1, 7))):
        rows: list[Row | Version] = []
        for _ in range(draw(st.integers(0, 5))):
            moment = draw(MOMENTS)
            if draw(st.booleans()):
                rows.append(row(moment, offset))
            elif before is None or moment >= before - history:
                rows.append(version(moment, draw(st.sampled_from([None, f"v{offset}"])), offset))
            offset += 1
        rise = draw(st.sampled_from([None, 0, 1, 3, 9, 30]))
        watermark = before if rise is None else (-8 if before is None else before) + rise
        batches.append((rows, watermark))
        before = watermark
    return batches


@pytest.mark.parametrize("wait", [True, False])
@examples(150)
@given(st.data(), st.sampled_from([0, 1, 7, 60]), st.sampled_from([0, 0, 1, 6, 50]))
def test_answers_equal_a_linear_scan_over_all_versions(wait: bool, data: st.DataObject, history: int, ttl: int) -> None:
    schedule = data.draw(schedules(history))
    enrich = spec(history, wait, ttl)

    told = drive(enrich, [*schedule, ([], END)])

    batches, late = brute(enrich, [*schedule, ([], END)])
    assert told.batches == batches
    assert told.late == late
    assert told.held == 0
    assert told.versions <= (0 if ttl else 1)


@examples(120)
@given(st.data(), st.integers(0, 10), st.sampled_from([0, 5, 100]), st.sampled_from([0, 3, 20]))
def test_r4_when_nothing_is_behind_every_schedule_gives_the_same_answers(
    data: st.DataObject, disorder: int, history: int, ttl: int
) -> None:
    events: list[Row | Version] = []
    for offset, (moment, is_row) in enumerate(data.draw(st.lists(st.tuples(MOMENTS, st.booleans()), max_size=20))):
        value = data.draw(st.sampled_from([None, f"v{offset}"]))
        events.append(row(moment, offset) if is_row else version(moment, value, offset))
    delay = {one: data.draw(st.integers(0, disorder * MILLI)) for one in events}
    arrived = sorted(events, key=lambda one: one.order[0] + delay[one])
    versions = [one for one in events if isinstance(one, Version)]
    rows = sorted((one for one in events if isinstance(one, Row)), key=lambda one: one.order)
    wanted = [Enriched(one, scan(versions, one.time, ttl * MILLI)) for one in rows]

    for ends in (list(range(1, len(arrived))), data.draw(st.lists(st.integers(0, len(arrived)), max_size=5))):
        schedule: Schedule = []
        start = 0
        for end in [*sorted(ends), len(arrived)]:
            frontier = max((one.order[0] for one in arrived[:end]), default=None)
            schedule.append((arrived[start:end], None if frontier is None else frontier // MILLI - disorder))
            start = end
        told = drive(spec(history, ttl=ttl), [*schedule, ([], END)])

        assert [one for batch in told.batches for one in batch] == wanted  # also in order of their rows
        assert told.late == []
