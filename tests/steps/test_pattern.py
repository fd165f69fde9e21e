"""Patterns: worked tables. A row is a word, which fits the steps whose letters it has; words are a second apart."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from headrace.base.errors import BadStep
from headrace.steps import pattern
from headrace.steps.pattern_slots import Slot
from headrace.steps.pattern_state import NONE, PAST_LAST, TO_FIRST, TO_LAST, TO_NEXT, Found, Spec, State
from headrace.steps.pattern_steps import FIRST, NEVER, NEVER_NEXT, NEXT, THEN, THEN_ANY, Criterion, Group, Step
from headrace.steps.row import HELD, LATE, Row
from tests.steps.driving import Driven, drive

SECOND = 1_000_000
LETTERS = "abcdefgu"
ENDLESS = 10_000_000  # a watermark in ms behind all rows


def fits(letter: str) -> Criterion:
    return Criterion(flag=LETTERS.index(letter))


def one(letter: str, how: str = THEN, **more: Any) -> Step:
    """The step `a` takes rows that have the letter a."""
    return Step(name=letter, how=how, criterion=fits(letter), **more)


def group(*steps: Step | Group, how: str = THEN, **more: Any) -> Group:
    return Group(how=how, steps=steps, **more)


def first(letter: str, **more: Any) -> Step:
    return one(letter, FIRST, **more)


def many(letter: str, how: str = THEN, **more: Any) -> Step:
    """One or more."""
    return one(letter, how, most=None, **more)


def word(text: str, time: int, offset: int, value: float | None = None) -> Row:
    args = (*(letter in text for letter in LETTERS), value)
    return Row(time, (time, 0, 0, offset, ""), args, text)


def words(text: str) -> list[Row]:
    return [word(one, (at + 1) * SECOND, at) for at, one in enumerate(text.split())]


def spec(*steps: Step | Group, after: str = NONE, within: int | None = None, **more: Any) -> Spec:
    return Spec(steps=steps, after=after, within=None if within is None else within * SECOND, **more)


def run(spec: Spec, text: str, until: int = ENDLESS) -> Driven:
    return drive(pattern, spec, [(words(text), until)])


def shown(found: list[Found], kind: str = "match") -> list[str]:
    return [" ".join(row.cause for _, row in one.rows) for one in found if one.kind == kind]


def matches(spec: Spec, text: str) -> list[str]:
    return shown(run(spec, text).results)  # type: ignore[arg-type]


def timeouts(spec: Spec, text: str, until: int = ENDLESS) -> list[str]:
    return shown(run(spec, text, until).results, "timeout")  # type: ignore[arg-type]


# How a step is reached.


@pytest.mark.parametrize(
    ("how", "wanted"),
    [(NEXT, []), (THEN, ["a b1"]), (THEN_ANY, ["a b1", "a b2"])],
)
def test_p2_next_is_strict_then_skips_others_then_any_branches(how: str, wanted: list[str]) -> None:
    assert matches(spec(first("a"), one("b", how)), "a c b1 b2") == wanted


def test_p2_next_takes_the_row_directly_after() -> None:
    assert matches(spec(first("a"), one("b", NEXT)), "a1 a2 b1 b2") == ["a2 b1"]


def test_every_row_that_fits_begins_a_match_of_its_own() -> None:
    assert matches(spec(first("a"), one("b")), "a1 a2 b1") == ["a1 b1", "a2 b1"]


def test_one_step_alone() -> None:
    assert matches(spec(first("a")), "a1 x a2") == ["a1", "a2"]


@pytest.mark.parametrize(
    ("inner", "wanted"),
    [
        (NEXT, ["a b3 c"]),
        (THEN, ["a b1 b2 b3 c", "a b1 b2 c", "a b1 c", "a b2 b3 c", "a b2 c", "a b3 c"]),
        (THEN_ANY, ["a b1 b2 b3 c", "a b1 b2 c", "a b1 b3 c", "a b1 c", "a b2 b3 c", "a b2 c", "a b3 c"]),
    ],
)
def test_p2_contiguity_inside_a_repetition(inner: str, wanted: list[str]) -> None:
    """`a b+ c`, the first b being any; in the strict case c must come next too."""
    last = one("c", NEXT if inner == NEXT else THEN)
    assert matches(spec(first("a"), many("b", THEN_ANY, inner=inner), last), "a b1 d1 b2 d2 b3 c") == wanted


def test_p2_consecutive_stops_at_the_first_other_row() -> None:
    """The field's own example: C D A1 A2 A3 D A4 B."""
    text = "c d a1 a2 a3 d a4 b"
    short = ["c a1 a2 a3 b", "c a1 a2 b", "c a1 b"]
    assert matches(spec(first("c"), many("a", inner=NEXT), one("b")), text) == short
    assert matches(spec(first("c"), many("a"), one("b")), text) == ["c a1 a2 a3 a4 b", *short]


def test_p2_any_inside_a_repetition_gives_every_combination() -> None:
    found = matches(spec(first("c"), many("a", inner=THEN_ANY), one("b")), "c d a1 a2 a3 d a4 b")

    assert sorted(found) == sorted(
        f"c a1 {rest}b" for rest in ("", "a2 ", "a3 ", "a4 ", "a2 a3 ", "a2 a4 ", "a3 a4 ", "a2 a3 a4 ")
    )  # the first a is reached by `then`: always a1


@pytest.mark.parametrize(
    ("least", "most", "inner", "wanted"),
    [
        (2, 2, THEN, ["a1 a2", "a2 a3"]),
        (3, 3, THEN, ["a1 a2 a3"]),
        (2, 2, NEXT, ["a1 a2"]),
        (2, 2, THEN_ANY, ["a1 a2", "a1 a3", "a2 a3"]),
        (1, 2, THEN, ["a1", "a1 a2", "a2", "a2 a3", "a3"]),
        (2, None, THEN, ["a1 a2", "a1 a2 a3", "a2 a3"]),
        (1, None, NEXT, ["a1", "a1 a2", "a2", "a3"]),
    ],
)
def test_p2_times_is_relaxed_unless_consecutive(least: int, most: int | None, inner: str, wanted: list[str]) -> None:
    assert matches(spec(first("a", least=least, most=most, inner=inner)), "a1 a2 x a3") == wanted


def test_an_optional_step_may_be_left_out() -> None:
    assert matches(spec(first("a"), one("b", optional=True), one("c")), "a b c") == ["a b c", "a c"]
    assert matches(spec(first("a"), one("b", optional=True), one("c")), "a c") == ["a c"]
    assert matches(spec(first("a"), one("b", NEXT, optional=True), one("c", NEXT)), "a b c") == ["a b c"]


def test_an_optional_first_step() -> None:
    assert matches(spec(first("a", optional=True), one("b")), "a b1 b2") == ["a b1", "b1", "b2"]


def test_an_optional_last_step_gives_both_matches() -> None:
    assert matches(spec(first("a"), one("b", optional=True)), "a b") == ["a", "a b"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("c a1 a2 a3 d", ["c a1 a2 a3 d"]),
        ("c x a1 x a2 x a3 d", ["c a1 a2 a3 d"]),
        ("c a1 a2 x d", ["c a1 a2 d"]),
        ("c x d", ["c d"]),
    ],
)
def test_p2_greedy_leaves_a_repetition_only_when_no_more_can_come(text: str, wanted: list[str]) -> None:
    assert matches(spec(first("c"), many("a", optional=True, greedy=True), one("d")), text) == wanted


def test_p2_greedy_before_an_optional_step() -> None:
    steps = first("c"), many("a", optional=True, greedy=True), one("d", optional=True), one("e")
    assert matches(spec(*steps), "c a1 a2 d e") == ["c a1 a2 d e", "c a1 a2 e"]


def test_p2_a_greedy_range_takes_what_it_can_and_no_more() -> None:
    steps = first("c"), one("a", least=2, most=3, greedy=True), one("d")
    assert matches(spec(*steps), "c a1 a2 d") == ["c a1 a2 d"]
    assert matches(spec(*steps), "c a1 a2 a3 d") == ["c a1 a2 a3 d"]
    assert matches(spec(*steps), "c a1 a2 a3 a4 d") == ["c a1 a2 a3 d"]


def test_p2_greedy_at_the_end_gives_every_length() -> None:
    assert matches(spec(first("c"), many("a", greedy=True)), "c a1 a2") == ["c a1", "c a1 a2"]


def test_p2_until_ends_a_repetition() -> None:
    """The field's own example: a+ until b."""
    assert matches(spec(first("a", most=None, until=fits("u"))), "a1 c a2 u a3") == ["a1", "a1 a2", "a2", "a3"]


@pytest.mark.parametrize(
    ("inner", "wanted"),
    [
        (THEN, ["c a1 a2 au", "c a1 au"]),
        (NEXT, ["c a1 a2 au", "c a1 au"]),
        (THEN_ANY, ["c a1 a2 au", "c a1 au"]),
    ],
)
def test_p2_the_row_of_until_may_be_the_next_step(inner: str, wanted: list[str]) -> None:
    steps = first("c"), many("a", inner=inner, until=fits("u")), Step(name="end", how=THEN, criterion=fits("u"))
    assert matches(spec(*steps), "c a1 a2 au a3") == wanted


def test_p2_greedy_asks_no_more_after_until() -> None:
    steps = first("c"), many("a", greedy=True, until=fits("u")), one("d")
    assert matches(spec(*steps), "c a1 a2 au a3 d") == ["c a1 a2 d"]
    assert matches(spec(*steps), "c au a1 a2 d") == []  # the first `a` is no `a` that may be taken


def test_p2_until_before_the_first_row_of_an_optional_greedy_repetition() -> None:
    assert matches(spec(first("c"), many("a", optional=True, greedy=True, until=fits("u")), one("d")), "c au a1 d") == [
        "c d"
    ]


# Never.


def test_p4_never_in_the_middle() -> None:
    steps = first("a"), one("b", NEVER), one("c")
    assert matches(spec(*steps), "a x c") == ["a c"]
    assert matches(spec(*steps), "a1 b a2 c") == ["a2 c"]
    assert matches(spec(*steps), "a bc c") == []  # a row that is both: it has come


def test_p4_never_counts_until_the_next_row_taken() -> None:
    steps = first("a"), one("b", NEVER), one("c", THEN_ANY, least=2, most=2, optional=True), one("d")
    assert matches(spec(*steps), "a c1 b c2 d") == ["a c1 c2 d"]
    assert matches(spec(*steps), "a d1 e b c1 c2 d2") == ["a d1"]


def test_p4_never_after_a_repetition_watches_between_its_rows_too() -> None:
    text = "a b1 b2 b3 c b4 b5 b6 d"
    assert matches(spec(first("a"), many("b"), one("c", NEVER), one("d")), text) == []
    assert sorted(matches(spec(first("a"), many("b", THEN_ANY), one("c", NEVER), one("d")), text)) == sorted(
        ["a b4 b5 b6 d", "a b4 b5 d", "a b4 d", "a b5 b6 d", "a b5 d", "a b6 d"]
    )
    combined = spec(first("a"), many("b", THEN_ANY, inner=THEN_ANY), one("c", NEVER), one("d"))
    assert sorted(matches(combined, text)) == sorted(
        ["a b4 b5 b6 d", "a b4 b5 d", "a b4 b6 d", "a b4 d", "a b5 b6 d", "a b5 d", "a b6 d"]
    )


def test_p4_never_next_looks_at_one_row() -> None:
    steps = first("a"), one("b", NEVER_NEXT), one("c")
    assert matches(spec(*steps), "a b c") == []
    assert matches(spec(*steps), "a x b c") == ["a c"]
    after_many = first("a"), many("b", THEN_ANY), one("c", NEVER_NEXT), one("d")
    assert matches(spec(*after_many), "a b1 c b2 d") == ["a b2 d"]


@pytest.mark.parametrize(
    ("text", "until", "wanted"),
    [
        ("a x", 10_999, []),
        ("a x", 11_000, ["a"]),
        ("a b", 11_000, []),
        ("a x x x x x x x x x b", 20_000, ["a"]),  # b comes ten seconds after: its time was up
    ],
)
def test_p4_never_at_the_end_matches_when_its_time_is_up(text: str, until: int, wanted: list[str]) -> None:
    found = run(spec(first("a"), one("b", NEVER), within=10), text, until)

    assert shown(found.results) == wanted  # type: ignore[arg-type]
    assert all(one.time == 11 * SECOND - 1 for one in found.results)  # rule T6: the bound - 1 us


def test_p4_never_at_the_end_is_no_timeout() -> None:
    assert timeouts(spec(first("a"), one("b", NEVER), within=10), "a1 x a2 b a3") == []


def test_p4_never_next_at_the_end_is_known_by_the_next_row_or_when_time_is_up() -> None:
    steps = spec(first("a"), one("b", NEVER_NEXT), within=10)
    assert matches(steps, "a1 b a2 x") == ["a2"]
    assert [(one.kind, one.time) for one in run(steps, "a x").results] == [("match", 2 * SECOND)]
    assert [(one.kind, one.time) for one in run(steps, "a").results] == [("match", 11 * SECOND - 1)]


def test_p4_never_with_its_own_bound_counts_from_the_row_before() -> None:
    steps = spec(first("a"), one("c"), one("b", NEVER, within=2 * SECOND), within=10)
    assert [(one.kind, one.time) for one in run(steps, "a c x b").results] == [("match", 4 * SECOND - 1)]
    assert matches(steps, "a c b") == []


def test_p4_two_nevers_at_the_end_are_waited_for_both() -> None:
    steps = spec(first("a"), one("b", NEVER, within=2 * SECOND), one("c", NEVER), within=10)
    assert [(one.kind, one.time) for one in run(steps, "a x x b").results] == [("match", 11 * SECOND - 1)]
    assert matches(steps, "a x x c") == []


def test_p4_a_never_with_only_optional_steps_after_it_waits_for_its_bound() -> None:
    steps = spec(first("a"), one("b", NEVER), one("c", optional=True), within=10)
    assert matches(steps, "a1 c1 b a2 x") == ["a1 c1", "a2"]


# Within.


@pytest.mark.parametrize(("at", "wanted"), [(10 * SECOND - 1, ["a b"]), (10 * SECOND, [])])
def test_p3_within_bounds_last_less_first_strictly(at: int, wanted: list[str]) -> None:
    rows = [word("a", 0, 0), word("b", at, 1)]

    told = drive(pattern, spec(first("a"), one("b"), within=10), [(rows, 100_000)])

    assert shown(told.results) == wanted  # type: ignore[arg-type]
    assert shown(told.results, "timeout") == ([] if wanted else ["a"])  # type: ignore[arg-type]


def test_p3_a_partial_match_times_out_when_the_watermark_reaches_its_bound() -> None:
    steps = spec(first("a"), one("b"), one("c"), within=10)
    assert timeouts(steps, "a b", 10_999) == []
    assert timeouts(steps, "a b", 11_000) == ["a b"]
    assert [(one.time, one.cause) for one in run(steps, "a b").results] == [(11 * SECOND - 1, "timeout/a=a,b=b")]


def test_p3_what_a_row_has_closed_does_not_time_out() -> None:
    assert timeouts(spec(first("a"), one("b", NEXT), within=10), "a x") == []
    assert timeouts(spec(first("a"), one("b", NEVER), one("c"), within=10), "a b") == []


def test_p3_a_match_that_could_go_on_does_not_time_out() -> None:
    assert timeouts(spec(first("a"), many("b"), within=10), "a b1 b2") == []
    assert timeouts(spec(first("a"), many("b"), one("c"), within=10), "a b1 b2") == ["a b1", "a b1 b2"]


def test_p3_within_between_steps() -> None:
    steps = spec(first("a"), one("b", within=2 * SECOND), one("c"), within=100)
    assert matches(steps, "a b x x x x c") == ["a b c"]
    assert matches(steps, "a x b c") == []
    assert [(one.kind, one.time) for one in run(steps, "a x b c").results] == [("timeout", 3 * SECOND - 1)]


def test_p3_without_bounds_nothing_times_out() -> None:
    state = State()
    steps = spec(first("a"), one("b"))
    pattern.step(steps, state, word("a", 0, 0), None)
    assert pattern.on_time(steps, state, 1_000, 0) == ([], 0)
    assert (state.held, pattern.due(steps, state)) == (1, None)


# Groups.


def test_a_group_repeats_as_one() -> None:
    pair = group(first("b"), one("c"), least=2, most=2)
    assert matches(spec(first("a"), pair, one("d")), "a b1 c1 b2 c2 d") == ["a b1 c1 b2 c2 d"]
    assert matches(spec(first("a"), pair, one("d")), "a b1 c1 d") == []


def test_a_group_may_come_first_and_be_optional() -> None:
    assert matches(spec(group(first("a"), one("b"), how=FIRST, optional=True), one("c")), "a b c") == ["a b c", "c"]


def test_a_group_or_more() -> None:
    pair = group(first("b"), one("c"), most=None)
    assert matches(spec(first("a"), pair, one("d")), "a b1 c1 b2 c2 d") == ["a b1 c1 b2 c2 d", "a b1 c1 d"]


def test_consecutive_groups_follow_each_other_directly() -> None:
    pair = group(first("b"), one("c"), least=2, most=2, inner=NEXT)
    assert matches(spec(first("a"), pair), "a b1 x c1 b2 x c2") == ["a b1 c1 b2 c2"]
    assert matches(spec(first("a"), pair), "a b1 c1 x b2 c2") == []


def test_a_group_is_reached_as_the_group_says_whichever_step_takes_its_first_row() -> None:
    pair = group(first("b", optional=True), one("c"), how=NEXT)
    assert matches(spec(first("a"), pair), "a c") == ["a c"]
    assert matches(spec(first("a"), pair), "a x c") == []
    assert matches(spec(first("a"), pair), "a b x c") == ["a b c"]


def test_a_group_in_a_group() -> None:
    inside = group(first("b"), one("c", NEXT), most=None, inner=NEXT)
    outside = group(inside, one("d", NEXT), least=2, most=2)
    assert matches(spec(first("a"), outside), "a b1 c1 b2 c2 d1 x b3 c3 d2") == ["a b1 c1 b2 c2 d1 b3 c3 d2"]


def test_one_assignment_of_rows_is_one_match_however_many_ways_lead_to_it() -> None:
    nested = group(first("a", most=None), how=FIRST, most=None)
    assert matches(spec(nested), "a1 a2 a3") == ["a1", "a1 a2", "a2", "a1 a2 a3", "a2 a3", "a3"]


# After a match.

B_PLUS_C = (first("b", most=None, inner=NEXT, greedy=True), one("c", NEXT))


@pytest.mark.parametrize(
    ("after", "to", "wanted"),
    [
        (NONE, "", ["b1 b2 b3 c", "b2 b3 c", "b3 c"]),
        (TO_NEXT, "", ["b1 b2 b3 c", "b2 b3 c", "b3 c"]),
        (PAST_LAST, "", ["b1 b2 b3 c"]),
        (TO_FIRST, "b", ["b1 b2 b3 c", "b2 b3 c", "b3 c"]),
        (TO_LAST, "b", ["b1 b2 b3 c", "b3 c"]),
    ],
)
def test_p2_after_match_the_fields_table(after: str, to: str, wanted: list[str]) -> None:
    assert matches(spec(*B_PLUS_C, after=after, to=to), "b1 b2 b3 c") == wanted


@pytest.mark.parametrize(
    ("after", "to", "wanted"),
    [
        (NONE, "", ["a b c1 c2 c3 d", "b c1 c2 c3 d", "c1 c2 c3 d"]),
        (TO_FIRST, "many", ["a b c1 c2 c3 d", "c1 c2 c3 d"]),
    ],
)
def test_p2_after_match_to_first_drops_what_began_before_it(after: str, to: str, wanted: list[str]) -> None:
    """(a | b | c) (b | c) c+ greedy d, each `next`."""
    either = Criterion(condition=0), Criterion(condition=1)
    conditions: tuple[Callable[..., bool], ...] = (
        lambda args, named: args[0] or args[1] or args[2],
        lambda args, named: args[1] or args[2],
    )
    steps = (
        Step(name="one", how=FIRST, criterion=either[0]),
        Step(name="two", how=NEXT, criterion=either[1]),
        Step(name="many", how=NEXT, criterion=fits("c"), most=None, inner=NEXT, greedy=True),
        one("d", NEXT),
    )
    assert matches(spec(*steps, after=after, to=to, conditions=conditions), "a b c1 c2 c3 d") == wanted


def test_p2_after_match_next_gives_one_match_for_each_first_row() -> None:
    steps = first("a"), many("b", NEXT)
    assert matches(spec(*steps), "a b1 b2 b3") == ["a b1", "a b1 b2", "a b1 b2 b3"]
    assert matches(spec(*steps, after=TO_NEXT), "a b1 b2 b3") == ["a b1"]
    assert matches(spec(first("a"), one("b", THEN_ANY), after=TO_NEXT), "a1 b1 a2 b2") == ["a1 b1", "a2 b2"]


def test_p2_after_match_past_last_is_the_default() -> None:
    three = first("a", least=3, most=3)
    assert Spec(steps=(three,)).after == PAST_LAST
    assert matches(spec(three), "a1 a2 a3 a4 a5 a6") == ["a1 a2 a3", "a2 a3 a4", "a3 a4 a5", "a4 a5 a6"]
    assert matches(spec(three, after=PAST_LAST), "a1 a2 a3 a4 a5 a6") == ["a1 a2 a3", "a4 a5 a6"]


def test_p2_after_match_past_last_keeps_the_one_with_the_earliest_rows() -> None:
    steps = first("a"), one("b", THEN_ANY), one("c", THEN_ANY), one("d")
    assert matches(spec(*steps, after=PAST_LAST), "a1 a2 b1 b2 c1 c2 d1 d2") == ["a1 b1 c1 d1"]


def test_p2_after_match_to_first_and_to_last() -> None:
    steps = first("a", least=2, most=2), one("b", NEXT, least=2, most=2)
    text = "ab1 ab2 ab3 ab4 ab5 ab6 ab7"
    assert matches(spec(*steps, after=TO_FIRST, to="b"), text) == ["ab1 ab2 ab3 ab4", "ab3 ab4 ab5 ab6"]
    assert matches(spec(*steps, after=TO_LAST, to="b"), text) == ["ab1 ab2 ab3 ab4", "ab4 ab5 ab6 ab7"]


def test_p2_after_match_to_a_step_without_rows_skips_nothing() -> None:
    steps = first("a"), one("b", NEXT, optional=True), one("c")
    assert matches(spec(*steps, after=TO_FIRST, to="b"), "a1 a2 c") == ["a1 c", "a2 c"]


def test_p2_a_match_waits_for_a_partial_match_that_began_before_it() -> None:
    """b1 completes what began with a2; what began with a1 is still open, and comes first when b2 completes it."""
    same = Criterion(flag=LETTERS.index("b"), condition=0)
    steps = first("a"), one("c"), Step(name="b", how=THEN, criterion=same)
    asked = spec(
        *steps, after=TO_FIRST, to="c", within=60, conditions=(lambda args, named: args[-1] == named["a"][0][-1],)
    )
    texts = [("a1", 0.0), ("c1", 0.0), ("a2", 1.0), ("c2", 0.0), ("b1", 1.0), ("b2", 0.0)]
    rows = [word(text, (at + 1) * SECOND, at, value) for at, (text, value) in enumerate(texts)]

    told = drive(pattern, asked, [(rows[:5], 5_500), (rows[5:], 6_500)])
    assert shown(told.results) == ["a1 c1 b2", "a2 c2 b1"]  # type: ignore[arg-type]

    told = drive(pattern, asked, [(rows[:5], 60_999), ([], 61_000)])
    assert [(one.kind, one.cause) for one in told.results] == [
        ("timeout", "timeout/a=a1,c=c1"),
        ("match", "match/a=a2,c=c2,b=b1"),  # nobody is before it any more
    ]


# Order, lateness, counting.


def test_p1_rows_have_their_turn_in_event_time_order() -> None:
    rows = words("a b c")
    told = drive(pattern, spec(first("a"), one("b", NEXT), one("c", NEXT)), [(rows[2:], 500), (rows[:2], 4_000)])
    assert shown(told.results) == ["a b c"]  # type: ignore[arg-type]


def test_p1_a_row_is_held_until_the_watermark_has_passed_it() -> None:
    asked, state = spec(first("a")), State()
    assert pattern.step(asked, state, word("a", 5 * SECOND, 0), 1_000) == HELD
    assert pattern.due(asked, state) == 5_001
    assert (pattern.on_time(asked, state, 5_000, 0), state.held) == (([], 0), 1)
    found, used = pattern.on_time(asked, state, 5_001, 0)
    assert (shown(found), used, state.held, state.empty) == (["a"], 1, 0, True)


def test_p1_a_row_behind_the_watermark_is_late() -> None:
    asked, state = spec(first("a")), State()
    assert pattern.step(asked, state, word("a", 5 * SECOND - 1, 0), 5_000) == LATE
    assert pattern.step(asked, state, word("a", 5 * SECOND, 0), 5_000) == HELD


def test_p1_rows_of_equal_time_have_their_turn_in_order() -> None:
    rows = [word("b", SECOND, 1), word("a", SECOND, 0)]
    assert shown(drive(pattern, spec(first("a"), one("b", NEXT)), [(rows, 2_000)]).results) == ["a b"]  # type: ignore[arg-type]


def test_p1_by_arrival_rows_have_their_turn_as_they_come_and_time_moves_only_with_the_watermark() -> None:
    asked, state = spec(first("a"), one("b"), within=10, arrival=True), State()

    def come(text: str, second: int) -> list[str]:
        assert pattern.step(asked, state, word(text, second * SECOND, second), 0) == HELD
        return shown(pattern.take(state)[0])

    assert come("a1", 20) == []
    assert come("b0", 10) == []  # ten seconds away is too far, to either side
    assert come("b1", 15) == ["a1 b1"]  # older, but it came later
    assert come("a2", 21) == []
    assert come("b2", 40) == []  # too far away from a2, which is still open
    assert come("b3", 22) == ["a2 b3"]
    assert come("a3", 23) == []
    assert shown(pattern.on_time(asked, state, 32_999, 0)[0], "timeout") == []
    assert pattern.due(asked, state) == 33_000
    assert shown(pattern.on_time(asked, state, 33_000, 0)[0], "timeout") == ["a3"]
    assert state.empty


def test_d2_a_match_is_known_by_its_rows_and_their_steps() -> None:
    told = run(spec(first("a", optional=True), one("b", optional=True), one("c")), "ab c")
    assert [one.cause for one in told.results] == ["match/a=ab,c=c", "match/b=ab,c=c", "match/c=c"]
    assert [one.time for one in told.results] == [2 * SECOND] * 3  # rule T6: its last row


def test_d3_a_row_is_held_while_it_waits_or_a_partial_match_holds_it_then_used() -> None:
    asked, state = spec(first("a"), many("b"), one("c"), within=10), State()
    for row in words("a x b1 b2"):
        pattern.step(asked, state, row, None)
    assert state.held == 4
    assert pattern.on_time(asked, state, 3_500, 0)[1] == 1  # x; a and b1 are held, b2 waits
    assert state.held == 3
    assert pattern.on_time(asked, state, 4_500, 0)[1] == 0
    assert state.held == 3  # b1 once, though two partial matches hold it
    found, used = pattern.on_time(asked, state, 11_000, 0)
    assert (shown(found, "timeout"), used, state.held) == (["a b1", "a b1 b2"], 3, 0)


def test_p5_conditions_see_the_rows_taken_so_far_and_their_aggregates() -> None:
    def above_average(args: tuple[Any, ...], named: dict[str, list[tuple[Any, ...]]]) -> bool | None:
        before = [row[-1] for row in named["a"]]
        return None if not before else args[-1] > sum(before) / len(before)

    asked = spec(
        first("a", least=2, most=2),
        Step(name="b", how=THEN, criterion=Criterion(flag=1, condition=0)),
        conditions=(above_average,),
    )
    values = [("a1", 10), ("a2", 20), ("b1", 15), ("b2", 16)]
    rows = [word(text, (at + 1) * SECOND, at, value) for at, (text, value) in enumerate(values)]
    assert shown(drive(pattern, asked, [(rows, ENDLESS)]).results) == ["a1 a2 b2"]  # type: ignore[arg-type]


def test_p5_a_flag_or_a_condition_that_is_null_is_not_true() -> None:
    null = Row(SECOND, (SECOND, 0, 0, 0, ""), (None,) * (len(LETTERS) + 1), "null")
    asked = Spec(steps=(first("a"),))
    assert drive(pattern, asked, [([null], ENDLESS)]).results == []
    asked = Spec(steps=(Step(name="a", how=FIRST, criterion=Criterion(condition=0)),), conditions=(lambda a, n: None,))
    assert drive(pattern, asked, [([null], ENDLESS)]).results == []


# Limits and refusals.


def test_more_partial_matches_than_the_limit_are_refused_and_told() -> None:
    asked = spec(first("a"), many("b", THEN_ANY, inner=THEN_ANY), one("c"), within=60, limit=10)
    told = run(asked, "a b1 b2 b3 b4 b5", 7_000)

    kinds = [(one.kind, one.refused, one.cause) for one in told.results]
    assert kinds == [("refused", 6, "refused/b4"), ("refused", 10, "refused/b5")]
    assert told.held == 5  # a and four b


def test_ten_thousand_partial_matches_of_a_key_are_handled() -> None:
    """Every subset of thirteen rows, sharing their beginnings: 8,192 open ones hold 14 rows."""
    asked = spec(first("a"), many("b", THEN_ANY, inner=THEN_ANY), one("c"), within=60)
    state = State()
    for row in words("a " + " ".join(f"b{n}" for n in range(13))):
        pattern.step(asked, state, row, None)
    found, _ = pattern.on_time(asked, state, 15_000, 0)
    assert (found, len(state.runs), state.held) == ([], 8_192, 14)

    pattern.step(asked, state, word("c", 20 * SECOND, 20), 15_000)
    found, used = pattern.on_time(asked, state, 20_001, 0)
    assert (len(found), len({one.cause for one in found}), used) == (8_191, 8_191, 1)
    assert [len(state.runs), state.held] == [8_192, 14]  # each b may be followed by others still
    assert len(state.as_json()["rows"]) == 14


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        ((first("a"), one("b", NEVER)), "without within"),
        ((one("a", NEVER), one("b")), "begin with never"),
        ((first("a", optional=True), one("b", optional=True)), "every step may be left out"),
        ((first("a"), group(first("b", optional=True))), "every step may be left out"),
        ((first("a"), one("a")), "share a name"),
        ((first("a", least=3, most=2),), "3 to 2 times"),
        ((first("a", least=0),), "0 to 1 times"),
        ((first("a"), one("b", NEVER, most=None), one("c")), "cannot be repeated"),
        ((first("a", least=2, most=2, until=fits("u")),), "not or_more"),
        ((group(first("a", least=40, most=40), how=FIRST, least=40, most=40),), "more than 1000"),
    ],
)
def test_patterns_that_make_no_sense_are_refused(steps: tuple[Step | Group, ...], why: str) -> None:
    with pytest.raises(BadStep, match=why):
        Spec(steps=steps)


def test_skipping_to_a_step_that_is_not_there_is_refused() -> None:
    with pytest.raises(BadStep, match="no skipping to 'x'"):
        Spec(steps=(first("a"),), after=TO_LAST, to="x")


def test_a_spec_as_json_is_its_automaton_and_everything_but_the_conditions() -> None:
    steps = first("a"), one("b", most=None, greedy=True, until=fits("u")), one("d", NEVER_NEXT), one("c", NEXT)
    asks = (Slot(fn="sum", step="a", column=8, of="decimal", precision=28),)
    asked = spec(*steps, after=TO_LAST, to="b", within=5, asks=(asks,), output=(Slot(fn="count", step="b"),))
    told = json.loads(json.dumps(asked.as_json()))

    assert told["nfa"]["steps"][1] == {
        "name": "b", "flag": 1, "condition": None, "until": {"flag": 7, "condition": None},
    }  # fmt: skip
    to_c = next(edge for edge in told["nfa"]["edges"] if edge["how"] == "next")
    without_greedy = to_c["lifted"][0][1]
    assert to_c == {
        "to": 2, "how": "next", "nevers": [{"flag": 3, "condition": None, "directly": True, "within": None}],
        "greedy": [1], "within": None, "repeats": False, "lifted": [[1, without_greedy]],
    }  # fmt: skip
    assert told["nfa"]["edges"][without_greedy] == {**to_c, "greedy": [], "lifted": []}
    assert (told["nfa"]["step_at"], told["nfa"]["ends"]) == ([0, 1, 2], [False, False, True])
    assert {name: told[name] for name in told if name != "nfa"} == {
        "step": "pattern", "within": 5_000_000, "after": "to last", "to": "b", "arrival": False, "limit": 10_000,
        "conditions": [{"slots": [{"fn": "sum", "step": "a", "column": 8, "precision": 28}]}],
        "output": {"slots": [{"fn": "count", "step": "b", "column": None, "precision": 0}]},
        "numbers": [],
    }  # fmt: skip
