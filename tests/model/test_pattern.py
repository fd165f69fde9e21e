"""Patterns as declared: names, keys, columns, and every mistake refused at the user's line (rule B4)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

import headrace as hr
from headrace.base.errors import DeclarationError
from headrace.expr.types import INT, TEXT, TIME, list_of
from headrace.model import matched
from headrace.model.pattern import Pattern
from tests.reference.signs import Other, Sign


@hr.event(topic="numbered", key="key", time="at")
class Numbered:
    key: int
    note: str | None
    tags: list[str]
    at: datetime


APP = hr.App("signs")
SIGNS = APP.stream(Sign, disorder="0 s")
OTHERS = APP.stream(Other, disorder="0 s")
NUMBERED = APP.stream(Numbered, disorder="0 s")


def empty(**more: Any) -> Pattern:
    return APP.pattern("p", **{"key": "key", **more})


def one(**more: Any) -> Pattern:
    return empty(**more).first("a", SIGNS)


def ended(**more: Any) -> Pattern:
    return one(**more).within("1 min")


def nullable() -> Pattern:
    return APP.pattern("p", key="note").first("a", NUMBERED)


REFUSED: dict[str, tuple[Callable[[], object], str, str]] = {
    "no key": (lambda: APP.pattern("p"), "bad-call", "missing a required argument: 'key'"),  # type: ignore[call-arg]
    "no name": (lambda: APP.pattern("", key="key"), "bad-step", "is no name for a pattern"),
    "a pattern's name with blanks": (lambda: APP.pattern("two words", key="key"), "bad-step", "'two words' is no name"),
    "no steps": (lambda: empty(keep="1 d").matches, "bad-step", "no steps"),
    "no first step": (lambda: empty().then("b", SIGNS), "bad-step", "begins a pattern"),
    "two first steps": (lambda: one().first("b", SIGNS), "bad-step", "once"),
    "a repetition of nothing": (lambda: empty().times(3), "bad-step", "no step yet"),
    "no stream": (lambda: empty().first("a"), "bad-step", "says no stream"),
    "a stream that is none": (lambda: empty().first("a", Sign), "bad-step", "no stream"),  # type: ignore[arg-type]
    "a stream of another app": (
        lambda: empty().first("a", hr.App("other").stream(Sign, disorder="0 s")), "bad-step", "one app"),
    "a name that is none": (lambda: one().then("no name"), "bad-step", "cannot name a step"),
    "a name twice": (lambda: one().then("a"), "bad-step", "two steps are called 'a'"),
    "a name twice, in a group": (lambda: one().then(hr.group("b").then("a")), "bad-step", "two steps"),
    "unknown key": (lambda: empty(key="kee").first("a", SIGNS), "unknown-column", "no column 'kee'"),
    "nullable key": (nullable, "bad-step", "may be null"),
    "keys of other types": (lambda: one().then("b", NUMBERED), "bad-step", "text, but int in numbered"),
    "keys of other columns": (
        lambda: empty(key="*").first("a", OTHERS).then("b", SIGNS.select("key, value")), "bad-step", "by name"),
    "unknown column": (lambda: one().then("b", where="valu > 0"), "unknown-column", "did you mean value"),
    "unknown column of a step": (lambda: one().then("b", where="b.valu > 0"), "unknown-column", "did you mean value"),
    "unknown column of an earlier step": (
        lambda: one().then("b", OTHERS, where="price > a.price"), "unknown-column", "no column 'price'"),
    "unknown step": (lambda: one().then("b", where="c.value > 0"), "unknown-column", "no row named 'c'"),
    "a later step": (
        lambda: empty().first("a", SIGNS, where="value > b.value").then("b"), "unknown-column", "not known yet"),
    "a later step, in a group": (
        lambda: one().then(hr.group("b", where="value > c.value").then("c")), "unknown-column", "not known yet"),
    "an aggregate of a later step": (
        lambda: one().then("b", where="value > avg(c.value)"), "unknown-column", "no row named 'c'"),
    "a step that takes no rows": (
        lambda: one().never("n").then("b", where="value > n.value"), "unknown-column", "no row named 'n'"),
    "an aggregate of no step": (
        lambda: one().then("b", where="avg(value) > 2"), "expression-refused", "over which rows"),
    "an aggregate of an expression": (
        lambda: one().then("b", where="avg(a.value * 2) > 2"), "expression-refused", "over which rows"),
    "an aggregate of text": (lambda: one().then("b", where="avg(a.what) > 2"), "expression-type", "makes no sense"),
    "an aggregate elsewhere": (lambda: SIGNS.where("avg(value) > 2"), "expression-refused", "combines many rows"),
    "no condition": (lambda: one().then("b", where="value + a.value"), "expression-refused", "not a condition"),
    "other types": (lambda: one().then("b", where="value > a.what"), "expression-type", "cannot be computed"),
    "a Python function": (lambda: one().then("b", where=lambda row: True), "bad-step", "not known to Python"),
    "unknown until": (lambda: one().or_more().until("valu = 1"), "unknown-column", "did you mean value"),
    "until of what ends": (lambda: one().times(3).until("value = 1"), "bad-step", "or_more"),
    "times of none": (lambda: one().times(0), "bad-step", "0 to 0 times"),
    "times backwards": (lambda: one().times(3, 2), "bad-step", "3 to 2 times"),
    "never twice": (lambda: one().never("n").times(2), "bad-step", "takes no row"),
    "never a group": (lambda: one().never(hr.group("n")), "bad-step", "never a group"),  # type: ignore[arg-type]
    "a group with a stream": (lambda: one().then(hr.group("b"), SIGNS), "bad-step", "no rows of its own"),
    "a greedy group": (lambda: one().then(hr.group("b")).greedy(), "bad-step", "greedy"),
    "greedy once": (lambda: one().greedy().within("1 min").matches, "bad-step", ".greedy() of a, which comes once"),
    "consecutive once": (lambda: one().consecutive().within("1 min").matches, "bad-step", ".times(3).consecutive()"),
    "any once": (lambda: one().then("b").any().within("1 min").matches, "bad-step", ".any() of b"),
    "no within": (lambda: one().then("b").matches, "bad-step", "for ever"),
    "within and keep": (lambda: ended(keep="1 d"), "bad-step", "within and keep"),
    "within of nothing": (lambda: one().within("0 s"), "bad-step", "no time"),
    "within of nothing, between": (lambda: one().then("b", within="-1 s"), "bad-step", "no time"),
    "keep of nothing": (lambda: one(keep="0 s"), "bad-step", "keeps nothing"),
    "within that is none": (lambda: one().within("soon"), "bad-duration", "soon"),
    "never at the end without within": (lambda: one(keep="1 d").never("n").matches, "bad-step", "without within"),
    "never at the end, perhaps": (
        lambda: one(keep="1 d").never("n").then("b").optional().matches, "bad-step", "without within"),
    "never at the end of a group": (
        lambda: one(keep="1 d").then(hr.group("b").never("n")).matches, "bad-step", "without within"),
    "never at the beginning": (
        lambda: one().optional().never("n").then("b").within("1 min").matches, "bad-step", "begin with never n"),
    "never at the beginning of a group": (
        lambda: empty().first(hr.group("a", SIGNS).optional().never("n").then("b")).within("1 min").matches,
        "bad-step", "begin with never n"),
    "every step optional": (lambda: ended().optional().timeouts, "bad-step", "every step may be left out"),
    "every step of a group optional": (
        lambda: ended().then(hr.group("b").optional()).matches, "bad-step", "every step may be left out"),
    "too many rows": (lambda: ended().then(hr.group("b").times(100)).times(20).matches, "bad-step", "1000"),
    "unknown policy": (lambda: one(after_match="past the last"), "bad-step", "to first NAME"),
    "a policy of no step": (lambda: ended(after_match="to first b").matches, "bad-step", "no skipping to 'b'"),
    "select of an unknown row": (lambda: ended(select="b.value").matches, "unknown-column", "no row named 'b'"),
    "select of a bare column": (lambda: ended(select="value").matches, "unknown-column", "write a.value"),
    "select without name": (lambda: ended(select="count(a)").matches, "expression-refused", "has no name"),
    "select of everything": (lambda: ended(select="*").matches, "expression-refused", "name the columns"),
    "select of a name twice": (
        lambda: ended(select="a.value, a.what as value").matches, "bad-step", "two columns are named 'value'"),
    "select of what may not fit": (
        lambda: ended(select="a.value * 2 as double").matches, "bad-step", "only chooses columns"),
    "a new name": (lambda: ended().matches.named("q"), "bad-step", "has its name"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", REFUSED.values(), ids=REFUSED.keys())
def test_b4_mistakes_are_refused_at_the_users_line(mistake: tuple[Callable[[], object], str, str]) -> None:
    declare, code, words = mistake
    with pytest.raises(Exception) as caught:
        declare()

    error: Any = caught.value
    assert error.code == code
    assert words in str(error)
    assert error.where is not None
    assert error.where.file == __file__


def test_an_error_in_a_group_points_at_the_step_in_it() -> None:
    group = hr.group("b").then("c", where="valu > 0")
    line = group.parts[1].place.line  # type: ignore[union-attr]
    with pytest.raises(DeclarationError) as caught:
        one().then(group)
    assert caught.value.where is not None
    assert caught.value.where.line == line


def test_by_default_the_columns_of_each_steps_last_row_come_out() -> None:
    pattern = one().times(2).then("n", NUMBERED.select("cast(key as text) as key, tags")).optional().never("x")

    assert list(map(str, pattern.within("1 min").matches.columns)) == [
        "pattern text", "key text", "a_count int", "a_what text", "a_value int", "a_at time", "a_note text?",
        "n_tags list of text?",
    ]  # fmt: skip
    assert list(map(str, pattern.within("1 min").timeouts.columns)) == [
        "pattern text", "key text", "a_count int", "a_what text?", "a_value int?", "a_at time?", "a_note text?",
        "n_tags list of text?",
    ]  # fmt: skip


def test_select_gives_columns_their_types() -> None:
    select = "first(a.at) as since, list(a.value) as took, sum(a.value) as total, coalesce(a.note, 'none') as note"
    columns = {column.name: column for column in one(select=select).or_more().within("1 min").matches.columns}

    assert [column.type for column in columns.values()] == [TIME, list_of(INT), INT, TEXT]
    assert not any(column.nullable for column in columns.values())


def test_matches_keep_the_key_if_it_comes_out() -> None:
    assert [name for name, _ in ended().matches.key] == ["key"]
    assert [name for name, _ in ended(select="key, a.value").timeouts.key] == ["key"]
    assert ended(select="a.value, key as other").matches.key == ()


def test_a_step_without_a_stream_takes_that_of_the_step_before_it() -> None:
    node: Any = one().then(hr.group("b").then("o", OTHERS)).then("c").within("1 min").matches.node

    first, group, last = node.steps
    assert (first.input, [step.input for step in group.steps], last.input) == (0, [0, 1], 1)


def test_several_streams_of_one_name_are_told_apart() -> None:
    node: Any = one().then("b", SIGNS.select("key, value")).within("1 min").matches.node

    assert node.names == ("signs", "signs_2")
    assert "signs_2.value" in [column.name for column in node.layout]


def test_a_stream_and_a_part_of_it_are_one_input() -> None:
    node: Any = one().then("b", SIGNS.where("value > 1")).within("1 min").matches.node

    assert node.of == (SIGNS.node,)
    assert [(flag.name, flag.test and str(flag.test)) for flag in node.flags] == [("is b", "value > 1")]


def test_a_side_output_asked_for_twice_is_one_input() -> None:
    once = SIGNS.dedup("value", within="1 h")
    node: Any = empty().first("a", once.duplicates).then("b", once.duplicates).within("1 min").matches.node

    assert len(node.of) == 1


def test_flags_are_true_or_false() -> None:
    node: Any = one().then("b", NUMBERED.select("cast(key as text) as key, note"), where="note = 'x'").within("1 min")
    node = node.matches.node

    for number in range(len(node.of)):
        entering = node.entering(number)
        assert [value.type for value in entering] == [column.type for column in node.layout]
        assert not any(value.nullable for value in entering[: len(node.flags)])


def test_a_condition_may_be_built_from_columns() -> None:
    node: Any = one().then("b", where=hr.col.value > 3).within("1 min").matches.node

    assert str(node.flags[0].test) == "value > 3"


def test_matches_and_timeouts_are_two_ends_of_one_step() -> None:
    pattern = ended()
    timeouts: Any = pattern.timeouts.node
    assert timeouts.of is pattern.matches.node
    assert isinstance(pattern.matches.node, matched.Pattern)


def test_only_columns_that_somebody_asks_for_are_kept() -> None:
    node: Any = one(select="key").then("b", where="value > last(a.value)").within("1 min").matches.node

    assert [column.name for column in node.layout] == ["key(key)", "signs.value"]


def test_patterns_print_in_one_line() -> None:
    assert repr(one().then(hr.group("b").then("c")).never("d")) == "<pattern p of a, a group, d>"
    assert repr(hr.group("b").then("c")) == "<group of b, c>"
