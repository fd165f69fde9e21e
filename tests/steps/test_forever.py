"""The window without end: a result per batch that brought a row (rule W6)."""

from __future__ import annotations

from headrace.steps import forever
from headrace.steps.emission import Policy
from tests.steps.driving import COUNT, MIN, drive, row


def test_w6_every_batch_with_a_row_gives_a_result_without_bounds() -> None:
    spec = forever.Spec(emit=Policy(on_change=True), aggregates=(COUNT,))
    schedule = [([row(3 * MIN), row(1 * MIN, offset=1)], None), ([], 60_000), ([row(2 * MIN, offset=2)], 900_000)]

    told = drive(forever, spec, schedule)

    assert told.told == [(None, None, "early", 0, 2), (None, None, "early", 1, 3)]
    assert [(r.time, r.cause) for r in told.results] == [(3 * MIN, "forever/0"), (3 * MIN, "forever/1")]
    assert told.held == 3


def test_w6_no_row_is_late_for_it() -> None:
    spec = forever.Spec(emit=Policy(on_change=True), aggregates=(COUNT,))

    assert drive(forever, spec, [([], 10**12), ([row(0)], 10**12)]).late == []


def test_a_key_that_was_silent_for_its_ttl_begins_anew_with_results_of_their_own() -> None:
    spec = forever.Spec(emit=Policy(on_change=True), ttl=10 * MIN, aggregates=(COUNT,))
    schedule = [
        ([row(3 * MIN), row(1 * MIN, offset=1)], None),
        ([], 779_999),  # one millisecond before 13 minutes
        ([row(4 * MIN, offset=2)], 779_999),  # just in time: from now on it is silent since minute 4
        ([], 840_000),
        ([row(4 * MIN, offset=3)], 840_000),  # it would be forgotten at once
        ([row(5 * MIN, offset=4)], 840_000),
    ]

    told = drive(forever, spec, schedule)

    assert told.told == [(None, None, "early", 0, 2), (None, None, "early", 1, 3), (None, None, "early", 0, 1)]
    assert [r.cause for r in told.results] == [
        f"forever/{1 * MIN}/0",
        f"forever/{1 * MIN}/1",
        f"forever/{5 * MIN}/0",
    ]
    assert told.used == 3
    assert [late.cause for late in told.late] == ["t/0/3"]
    assert told.held == 1
