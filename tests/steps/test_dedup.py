"""Dedup: the first to arrive passes, the distance in event time decides (rule D1)."""

from __future__ import annotations

from headrace.steps import dedup
from headrace.steps.row import DUPLICATE, USED
from tests.steps.driving import MIN, row

SPEC = dedup.Spec(within=10 * MIN)


def verdicts(*minutes: float) -> list[str]:
    state = dedup.State()
    return [dedup.step(SPEC, state, row(int(at * MIN)), None) for at in minutes]


def test_d1_the_first_to_arrive_passes() -> None:
    assert verdicts(0, 5, 9) == [USED, DUPLICATE, DUPLICATE]


def test_d1_ten_minutes_later_it_is_another_event() -> None:
    assert verdicts(0, 10, 15) == [USED, USED, DUPLICATE]


def test_d1_a_duplicate_may_be_older_than_the_first() -> None:
    assert verdicts(20, 15, 10, 11) == [USED, DUPLICATE, USED, DUPLICATE]


def test_d1_a_repeat_of_what_is_forgotten_does_not_pass() -> None:
    assert dedup.step(SPEC, dedup.State(), row(0), 599_999) == USED
    assert dedup.step(SPEC, dedup.State(), row(0), 600_000) == DUPLICATE


def test_d1_an_id_is_forgotten_when_its_time_is_up() -> None:
    state = dedup.State()
    dedup.step(SPEC, state, row(0), None)

    assert dedup.due(SPEC, state) == 600_000
    dedup.on_time(SPEC, state, 599_999, 0)
    assert not state.empty
    dedup.on_time(SPEC, state, 600_000, 0)
    assert state.empty
    assert dedup.due(SPEC, state) is None
