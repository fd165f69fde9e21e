"""Enrich with the current value: what the table says when the row is processed."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from headrace.steps import current
from headrace.steps.row import MILLI, USED
from tests.properties import examples
from tests.steps.test_as_of import row, version

SPEC = current.Spec(keep=1_000_000)


def answers(*events: tuple[str, float, str | None]) -> list[str | None]:
    """Events in order of arrival: ("row" | "version", ms, value)."""
    state, told = current.State(), []
    for offset, (what, ms, value) in enumerate(events):
        if what == "version":
            assert current.learn(SPEC, state, version(ms, value, offset), None) == USED
            continue
        verdict, made = current.step(SPEC, state, row(ms, offset))
        assert verdict == USED
        (one,) = made
        assert one.row == row(ms, offset)
        told.append(None if one.values is None else one.values[0])
    assert state.held == 0
    return told


def test_j4_a_row_takes_the_value_known_when_it_is_processed_whatever_its_own_time() -> None:
    assert answers(
        ("row", 1, None), ("version", 10, "a"), ("row", 1, None), ("version", 20, "b"), ("row", 5, None)
    ) == [
        None,
        "a",
        "b",
    ]


def test_j6_an_older_version_that_comes_late_changes_nothing() -> None:
    assert answers(("version", 10, "a"), ("version", 9, "b"), ("row", 50, None)) == ["a"]


def test_j6_ties_go_to_the_later_offset() -> None:
    assert answers(("version", 10, "a"), ("version", 10, "b"), ("row", 50, None)) == ["b"]


def test_j6_a_tombstone_deletes_and_an_older_version_does_not_bring_back() -> None:
    assert answers(("version", 10, "a"), ("version", 20, None), ("row", 1, None), ("version", 15, "b"),
                   ("row", 1, None), ("version", 21, "c"), ("row", 1, None)) == [None, None, "c"]  # fmt: skip


def test_j6_a_deletion_is_forgotten_when_its_time_is_up() -> None:
    state = current.State()
    current.learn(SPEC, state, version(20, None), None)

    assert current.due(SPEC, state) == 1_020
    current.on_time(SPEC, state, 1_019)
    assert not state.empty
    current.on_time(SPEC, state, 1_020)
    assert state.empty
    assert current.due(SPEC, state) is None


def test_j6_a_value_is_kept_for_ever() -> None:
    state = current.State()
    current.learn(SPEC, state, version(20, "a"), None)

    assert current.due(SPEC, state) is None
    assert current.on_time(SPEC, state, 10**12) == ([], 0)
    assert not state.empty


def living(ttl: float, *batches: tuple[list[tuple[str, float, str | None]], int | None]) -> list[list[str | None]]:
    """The answers of each batch, as the engines ask for them; a key that is left without state begins anew."""
    spec, state, told = current.Spec(keep=round(ttl * MILLI), ttl=round(ttl * MILLI)), current.State(), []
    before, offset = None, 0
    for events, watermark in batches:
        answers: list[str | None] = []
        for what, ms, value in events:
            offset += 1
            if what == "version":
                assert current.learn(spec, state, version(ms, value, offset), before) == USED
            else:
                ((_, values),) = current.step(spec, state, row(ms, offset))[1]
                answers.append(None if values is None else values[0])
        due = current.due(spec, state)
        if events or (due is not None and watermark is not None and due <= watermark):
            current.on_time(spec, state, watermark)
            due = current.due(spec, state)
            assert due is None or watermark is None or due > watermark
        state = current.State() if state.empty else state
        before = watermark
        told.append(answers)
    return told


def test_j7_a_row_is_gone_once_the_watermark_that_is_met_has_reached_its_version_time_and_ttl() -> None:
    asked = [("row", 1, None)]

    assert living(30, ([("version", 10, "a")], 39), (asked, 40), (asked, 41)) == [[], ["a"], [None]]
    assert living(30, ([("version", 10.001, "a")], 40), (asked, 41), (asked, 41)) == [[], ["a"], [None]]


def test_j7_a_version_renews_the_row() -> None:
    asked = [("row", 1, None)]

    assert living(30, ([("version", 10, "a"), ("version", 20, "a")], 49), (asked, 50), (asked, 50))[1:] == [
        ["a"],
        [None],
    ]


def test_j7_a_version_that_comes_when_its_time_is_up_is_not_seen_even_in_its_batch() -> None:
    late = [("version", 10, "a"), ("row", 50, None)]

    assert living(30, ([], 39), (late, 50)) == [[], ["a"]]
    assert living(30, ([], 40), (late, 50)) == [[], [None]]


def test_j7_a_younger_version_that_comes_late_brings_the_row_back() -> None:
    late = [("version", 15, "b"), ("row", 50, None)]

    assert living(30, ([("version", 10, "a")], 40), (late, 45), ([("row", 50, None)], 45)) == [[], ["b"], [None]]


def test_j7_nothing_is_remembered_of_a_row_whose_time_is_up() -> None:
    spec, state = current.Spec(keep=1_000_000, ttl=30_000), current.State()
    current.learn(spec, state, version(10, "a"), None)

    assert current.due(spec, state) == 40
    current.on_time(spec, state, 39)
    assert not state.empty
    current.on_time(spec, state, 40)
    assert state.empty


LIVES = st.lists(
    st.tuples(
        st.lists(
            st.tuples(st.sampled_from(["row", "version"]), st.integers(0, 20), st.sampled_from([None, "a", "b"])),
            max_size=4,
        ),
        st.integers(0, 6),
    ),
    max_size=8,
)


@examples(300)
@given(LIVES, st.integers(1, 9))
def test_j7_answers_equal_a_scan_over_all_versions(given: list[tuple[list[Any], int]], ttl: int) -> None:
    """Though tombstones are remembered no longer than a row lives, and rows not at all."""
    watermark, seen, wanted, batches = 0, [], [], []
    for events, rise in given:
        answers = []
        for what, ms, value in events:
            if what == "version":
                seen.append((ms, len(seen), value))
                continue
            latest = max(seen, default=None)
            alive = latest is not None and latest[0] + ttl > watermark
            answers.append(latest[2] if latest is not None and alive else None)
        watermark += rise
        wanted.append(answers)
        batches.append((events, watermark))

    assert living(ttl, ([], 0), *batches)[1:] == wanted


def test_the_spec_is_plain_json() -> None:
    assert SPEC.as_json() == {"step": "current", "keep": 1_000_000, "ttl": 0}


@examples(200)
@given(st.lists(st.tuples(st.sampled_from(["row", "version"]), st.integers(0, 5), st.sampled_from([None, "a", "b"]))))
def test_answers_equal_a_linear_scan(events: list[tuple[str, int, str | None]]) -> None:
    wanted = []
    for at, (what, _, _) in enumerate(events):
        if what == "row":
            known = [(ms, n, value) for n, (kind, ms, value) in enumerate(events[:at]) if kind == "version"]
            wanted.append(max(known, key=lambda one: one[:2])[2] if known else None)

    assert answers(*events) == wanted
