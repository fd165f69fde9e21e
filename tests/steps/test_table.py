"""Tables: the latest version wins, changes are net, versions grow."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headrace.steps import table
from headrace.steps.change import DELETE, INSERT, UPDATE, Change, reshaped
from headrace.steps.row import END, MILLI, USED
from headrace.steps.version import Version
from tests.properties import examples

KEEP = 1_000_000
FOREVER = 1 << 60


def version(time: int, value: int | None, offset: int = 0) -> Version:
    return Version((time, 0, 0, offset, ""), None if value is None else (value,))


def drive(*batches: tuple[list[Version], int | None], keep: int = KEEP, ttl: int = 0) -> list[list[Change]]:
    """One key, as the engines do; versions of a batch in order R2."""
    spec, state = table.Spec(keep=keep, ttl=ttl), table.State()
    told = []
    for versions, watermark in batches:
        for one in sorted(versions):
            assert table.step(spec, state, one) == USED
        due = table.due(spec, state)
        changes: list[Change] = []
        if versions or (due is not None and watermark is not None and due <= watermark):
            changes, used = table.on_time(spec, state, watermark)
            assert used == 0
            assert table.on_time(spec, state, watermark) == ([], 0)
            due = table.due(spec, state)
            assert due is None or watermark is None or due > watermark
        if state.empty:
            state = table.State()
        told.append(changes)
    return told


def test_j6_the_greatest_version_time_wins() -> None:
    assert drive(([version(10, 1)], None), ([version(12, 2, 1)], None), ([version(11, 3, 2)], None)) == [
        [Change(INSERT, None, (1,), 10)],
        [Change(UPDATE, (1,), (2,), 12)],
        [],
    ]


def test_j6_ties_go_to_the_later_offset() -> None:
    told = drive(([version(10, 1, 5)], None), ([version(10, 2, 4)], None), ([version(10, 3, 6)], None))

    assert told == [[Change(INSERT, None, (1,), 10)], [], [Change(UPDATE, (1,), (3,), 11)]]


def test_j6_a_deletion_outlives_an_older_version_that_comes_late() -> None:
    told = drive(([version(10, 1)], None), ([version(20, None, 1)], None), ([version(15, 2, 2)], None))

    assert told[1:] == [[Change(DELETE, (1,), None, 20)], []]


def test_j6_a_deletion_is_remembered_until_its_time_is_up() -> None:
    gone = ([version(20_000, None, 1)], 20)

    assert drive(([version(10, 1)], 0), gone, ([], 1_019), ([version(15, 2, 2)], 1_019))[3] == []
    assert drive(([version(10, 1)], 0), gone, ([], 1_020), ([version(15, 2, 2)], 1_020))[3] == [
        Change(INSERT, None, (2,), 15)
    ]


def test_j7_a_row_that_is_not_renewed_is_deleted_at_its_version_time_and_ttl() -> None:
    told = drive(([version(10_000, 1)], 10), ([], 39), ([], 45), ([], 1_000), ttl=30_000)

    assert told == [[Change(INSERT, None, (1,), 10_000)], [], [Change(DELETE, (1,), None, 40_000)], []]


def test_j7_every_version_renews_the_row_also_one_that_changes_nothing() -> None:
    told = drive(([version(10_000, 1)], 10), ([version(20_000, 1, 1)], 20), ([], 49), ([], 50), ttl=30_000)

    assert told[1:] == [[], [], [Change(DELETE, (1,), None, 50_000)]]


def test_j7_a_row_whose_time_is_up_when_it_comes_is_not_told() -> None:
    assert drive(([], 40), ([version(10_000, 1)], 40), ([version(10_001, 1, 1)], 40), ttl=30_000)[1:] == [
        [],
        [Change(INSERT, None, (1,), 10_001)],
    ]


def test_j7_a_younger_version_that_comes_late_brings_the_row_back_under_a_greater_version() -> None:
    told = drive(([version(10_000, 1)], 10), ([], 40), ([version(15_000, 2, 1)], 44), ([], 45), ttl=30_000, keep=30_000)

    assert told[1:] == [
        [Change(DELETE, (1,), None, 40_000)],
        [Change(INSERT, None, (2,), 40_001)],
        [Change(DELETE, (2,), None, 45_000)],
    ]


def test_j7_the_state_of_a_row_whose_time_is_up_is_freed() -> None:
    spec, state = table.Spec(keep=5_000, ttl=30_000), table.State()
    table.step(spec, state, version(10_000, 1))
    table.on_time(spec, state, 10)

    assert table.due(spec, state) == 40
    table.on_time(spec, state, 40)
    assert table.due(spec, state) == 45  # the deletion is remembered, so that versions grow
    table.on_time(spec, state, 45)
    assert state.empty


def test_j7_the_end_of_input_deletes_no_row() -> None:
    row = [version(10_000, 1)]

    assert drive((row, END), ttl=30_000) == [[Change(INSERT, None, (1,), 10_000)]]
    assert drive((row, 10), ([], END), ttl=30_000)[1] == []


def test_j5_a_batch_makes_one_net_change() -> None:
    assert drive(([version(1, 1), version(2, 2), version(3, 3)], None)) == [[Change(INSERT, None, (3,), 3)]]
    assert drive(([version(1, 1), version(2, None)], None)) == [[]]
    assert drive(([version(1, 1)], None), ([version(2, 2), version(3, 1)], None))[1] == []


def test_the_version_of_a_key_grows_over_deletion_and_return() -> None:
    told = drive(([version(10, 1)], None), ([version(10, None, 1)], None), ([version(10, 2, 2)], None))

    assert [change.version for batch in told for change in batch] == [10, 11, 12]


def test_a_filter_turns_changes_into_those_it_lets_one_see() -> None:
    update = Change(UPDATE, (1,), (2,), 7)

    assert reshaped(update, (1,), (2,)) == update
    assert reshaped(update, None, (2,)) == Change(INSERT, None, (2,), 7)
    assert reshaped(update, (1,), None) == Change(DELETE, (1,), None, 7)
    assert reshaped(update, None, None) is None
    assert reshaped(update, (0,), (0,)) is None  # a projection that hides what changed


def test_the_spec_is_plain_json() -> None:
    assert table.Spec(keep=5).as_json() == {"step": "table", "keep": 5, "ttl": 0}


VERSIONS = st.lists(st.tuples(st.integers(0, 8), st.one_of(st.none(), st.integers(0, 2))), max_size=4)


@examples(300)
@given(st.lists(VERSIONS, max_size=6))
def test_changes_applied_one_by_one_give_the_latest_version(given: list[list[tuple[int, int | None]]]) -> None:
    batches: list[list[Version]] = []
    for batch in given:
        offset = 10 * len(batches)
        batches.append([version(time, value, offset + n) for n, (time, value) in enumerate(batch)])

    told = drive(*((batch, None) for batch in batches), keep=FOREVER)

    seen: list[Version] = []
    shown, last = None, -1
    for batch, changes in zip(batches, told, strict=True):
        seen += batch
        assert len(changes) <= 1
        for change in changes:
            assert change.before == shown
            assert change.before != change.after
            assert change.version > last
            shown, last = change.after, change.version
        assert shown == (max(seen).values if seen else None)


LIVES = st.lists(st.tuples(VERSIONS, st.integers(0, 3)), max_size=8)


@examples(300)
@given(LIVES, st.integers(1, 4), st.booleans())
def test_j7_changes_follow_the_latest_version_as_long_as_it_lives(
    given: list[tuple[list[tuple[int, int | None]], int]], ttl: int, remembers: bool
) -> None:
    """To remember a deletion as long as a row lives is enough: older versions have outlived it after that."""
    batches: list[tuple[list[Version], int]] = []
    watermark = 0
    for batch, rise in given:
        watermark += rise
        offset = 10 * len(batches)
        batches.append(([version(ms * MILLI, value, offset + n) for n, (ms, value) in enumerate(batch)], watermark))

    told = drive(*batches, keep=FOREVER if remembers else ttl * MILLI, ttl=ttl * MILLI)

    seen: list[Version] = []
    shown, last = None, -1
    for (batch, watermark), changes in zip(batches, told, strict=True):
        seen += batch
        for change in changes:
            assert (change.before, change.version > last) == (shown, True)
            shown, last = change.after, change.version
        latest = max(seen, default=None)
        lives = latest is not None and latest.time + ttl * MILLI > watermark * MILLI
        assert shown == (latest.values if latest is not None and lives else None)
