"""Enrich with the current value: what the table says when the row is processed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headrace.steps import current
from headrace.steps.row import USED
from tests.properties import examples
from tests.steps.test_as_of import row, version

SPEC = current.Spec(keep=1_000_000)


def answers(*events: tuple[str, float, str | None]) -> list[str | None]:
    """Events in order of arrival: ("row" | "version", ms, value)."""
    state, told = current.State(), []
    for offset, (what, ms, value) in enumerate(events):
        if what == "version":
            assert current.learn(SPEC, state, version(ms, value, offset)) == USED
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
    current.learn(SPEC, state, version(20, None))

    assert current.due(SPEC, state) == 1_020
    current.on_time(SPEC, state, 1_019)
    assert not state.empty
    current.on_time(SPEC, state, 1_020)
    assert state.empty
    assert current.due(SPEC, state) is None


def test_j6_a_value_is_kept_for_ever() -> None:
    state = current.State()
    current.learn(SPEC, state, version(20, "a"))

    assert current.due(SPEC, state) is None
    assert current.on_time(SPEC, state, 10**12) == ([], 0)
    assert not state.empty


def test_the_spec_is_plain_json() -> None:
    assert SPEC.as_json() == {"step": "current", "keep": 1_000_000}


@examples(200)
@given(st.lists(st.tuples(st.sampled_from(["row", "version"]), st.integers(0, 5), st.sampled_from([None, "a", "b"]))))
def test_answers_equal_a_linear_scan(events: list[tuple[str, int, str | None]]) -> None:
    wanted = []
    for at, (what, _, _) in enumerate(events):
        if what == "row":
            known = [(ms, n, value) for n, (kind, ms, value) in enumerate(events[:at]) if kind == "version"]
            wanted.append(max(known, key=lambda one: one[:2])[2] if known else None)

    assert answers(*events) == wanted
