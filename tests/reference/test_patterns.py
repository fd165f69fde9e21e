"""Rules P1-P5 on the reference, through the builder; also T6, D2 and D3 for patterns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.base.ids import stable_id
from headrace.model import declared
from headrace.model.pattern import Pattern
from headrace.plan.explain import explain
from headrace.plan.plan import Plan, build
from headrace.reference.batch import Arrival, Batch
from headrace.reference.engine import Engine
from headrace.steps.row import END
from headrace.testing import Run
from tests.properties import examples
from tests.reference.signs import Sign, app, other, send, sign

A, B, C = "what = 'a'", "what = 'b'", "what = 'c'"
SECOND = timedelta(seconds=1)


def begun(bank: hr.App, signs: hr.Stream, after: str = "none", **more: Any) -> Pattern:
    return bank.pattern("p", key="key", after_match=after, **more).first("a", signs, where=A)


def sent(pattern: Pattern) -> None:
    pattern.matches.to(pattern.app.topic("out"))
    pattern.timeouts.to(pattern.app.topic("timeouts"))


def found(bank: hr.App, words: str, columns: str) -> list[tuple[Any, ...]]:
    with hr.testing.run(bank) as t:
        send(t, words)
        t.end()
        return values(t, "out", columns)


def values(t: Run, topic: str, columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in columns.split(", ")) for row in t.read(topic)]


# Rule P1: when rows have their turn


def test_p1_rows_have_their_turn_in_event_time_order() -> None:
    bank, signs, _ = app("10 s")
    sent(begun(bank, signs).next("b", where=B).within("1 min"))
    with hr.testing.run(bank) as t:
        t.send(sign(t, 2, "b1"), sign(t, 1, "a1"), sign(t, 3, "a2"))
        assert t.read("out") == []  # 2 is not yet behind the watermark
        t.send(sign(t, 12.001, "x"))

        assert values(t, "out", "a_value, b_value") == [(1, 1)]


def test_p1_a_row_whose_turn_has_passed_is_late() -> None:
    bank, signs, _ = app()
    sent(begun(bank, signs).then("b", where=B).within("1 min"))
    with hr.testing.run(bank) as t:
        t.send(sign(t, 5, "b1"), sign(t, 1, "a1"), sign(t, 6, "b2"))
        t.end()

        counts = t.counts("p")
        assert t.read("out") == []
        assert (counts.received, counts.late, counts.used, counts.held) == (3, 1, 2, 0)


PATTERNS: list[Callable[[Pattern], Pattern]] = [
    lambda p: p.then("b", where=f"{B} and value > a.value"),
    lambda p: p.times(2).consecutive().then_any("b", where=B),
    lambda p: p.or_more().greedy().until("value > 3").next("b", where=B).optional(),
    lambda p: p.never("b", where=B),
    lambda p: p.then(hr.group("b", where=B).then("c", where=f"{C} and value >= max(b.value)")).times(1, 2),
]


@given(
    words=st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5)), max_size=12),
    random=st.randoms(use_true_random=False),
    declare=st.sampled_from(PATTERNS),
    after=st.sampled_from(["none", "next", "skip past last", "to last a"]),
)
@examples(25)
def test_r4_what_is_found_does_not_depend_on_order_of_arrival_and_cuts(
    words: list[tuple[str, int]], random: Random, declare: Callable[[Pattern], Pattern], after: str
) -> None:
    def told(shuffle: bool) -> list[tuple[str, ...]]:
        bank, signs, _ = app("3 s")
        sent(declare(begun(bank, signs, after)).within("5 s"))
        with hr.testing.run(bank) as t:
            rows = [sign(t, second, f"{what}{value}") for second, (what, value) in enumerate(words)]
            if shuffle:
                rows.sort(key=lambda row: row.at + 3 * random.random() * SECOND)
            while rows:
                size = random.randint(1, 4) if shuffle else 1
                t.batch(*rows[:size])
                del rows[:size]
            t.end()
            assert t.counts("p").late == 0
            return sorted(
                (topic, str(record.time), repr(row))  # not its id: rows are known by their places in the log
                for topic in ("out", "timeouts")
                for row, record in zip(t.read(topic), t.records(topic), strict=True)
            )

    assert told(shuffle=True) == told(shuffle=False)


# Rule P2: the builder


@pytest.mark.parametrize(
    ("verb", "wanted"), [("next", []), ("then", [(1, 1)]), ("then_any", [(1, 1), (1, 2)])]
)  # fmt: skip
def test_p2_next_then_and_then_any(verb: str, wanted: list[Any]) -> None:
    bank, signs, _ = app()
    sent(getattr(begun(bank, signs), verb)("b", where=B).within("1 min"))

    assert found(bank, "a1 c1 b1 b2", "a_value, b_value") == wanted


def repeated(pattern: Pattern) -> Pattern:
    return replace(pattern, chosen="list(a.value) as took")


@pytest.mark.parametrize(
    ("words", "how", "wanted"),
    [
        ("a1 c a2 a3", lambda p: p.times(2), [[1, 2], [2, 3]]),
        ("a1 c a2 a3", lambda p: p.times(2).consecutive(), [[2, 3]]),
        ("a1 c a2 a3", lambda p: p.times(2).any(), [[1, 2], [1, 3], [2, 3]]),
        ("a1 a2", lambda p: p.times(1, 2), [[1], [1, 2], [2]]),
        ("a1 a2 a3", lambda p: p.times(2).or_more(), [[1, 2], [1, 2, 3], [2, 3]]),
        ("a1 a2 c a3", lambda p: p.or_more().until("value = 3").then("c", where=C), [[1], [1, 2], [2]]),
        ("a1 c", lambda p: p.then("b", where=B).optional().then("c", where=C), [[1]]),
        ("a1 a2 c", lambda p: p.or_more().greedy().then("c", where=C), [[1, 2], [2]]),
        ("a1 b a2 b c", lambda p: p.then(hr.group("b", where=B).then("again", where=A)).times(1, 2), [[1]]),
        ("a1 b a2 b a3", lambda p: p.then(hr.group("b", where=B).then("again", where=A)).times(2), [[1]]),
        ("a1 . . b a2 b", lambda p: p.next("b", where=B, within="2 s"), [[2]]),
        ("a1 a2 b c", lambda p: p.never("b", where=B).then("c", where=C), []),
        ("a1 c a2 b c", lambda p: p.never("b", where=B).then("c", where=C), [[1]]),
        ("a1 b a2 x b", lambda p: p.never_next("n", where="what = 'x'").then("b", where=B), [[1]]),
    ],
)
def test_p2_repetition_and_the_rest_of_the_grammar(words: str, how: Any, wanted: list[Any]) -> None:
    bank, signs, _ = app()
    sent(repeated(how(begun(bank, signs)).within("1 min")))

    assert sorted(took for (took,) in found(bank, words, "took")) == sorted(wanted)


@pytest.mark.parametrize(
    ("after", "wanted"),
    [
        ("none", ["a1 b1", "a1 b2", "a2 b1", "a2 b2"]),
        ("next", ["a1 b1", "a2 b1"]),
        ("skip past last", ["a1 b1"]),
        ("to first b", ["a1 b1"]),
        ("to last a", ["a1 b1", "a1 b2", "a2 b1", "a2 b2"]),
    ],
)
def test_p2_what_a_match_takes_with_it(after: str, wanted: list[str]) -> None:
    bank, signs, _ = app()
    sent(begun(bank, signs, after).then_any("b", where=B).within("1 min"))

    assert [f"a{a} b{b}" for a, b in sorted(found(bank, "a1 a2 b1 b2", "a_value, b_value"))] == wanted


# Rules P3 and P4: time that is up


def test_p3_within_is_strictly_less_and_what_takes_longer_is_a_timeout() -> None:
    bank, signs, _ = app()
    sent(begun(bank, signs).then("b", where=B).within("3 s"))
    with hr.testing.run(bank) as t:
        send(t, "a1 . b1 a2 . . b2")

        assert values(t, "out", "a_value, b_value") == [(1, 1)]
        assert values(t, "timeouts", "a_value, b_value") == [(2, None)]
        (record,) = t.records("timeouts")
        assert record.time == sign(t, 6, "x").at - timedelta(microseconds=1)  # T6: the bound less a moment
        assert record.key == "k"


def test_p3_a_pattern_that_only_keeps_has_timeouts_too() -> None:
    bank, signs, _ = app()
    sent(begun(bank, signs, keep="3 s").then("b", where=B))
    with hr.testing.run(bank) as t:
        send(t, "a1 . . x")

        assert values(t, "timeouts", "pattern, key, a_value, b_value") == [("p", "k", 1, None)]


def test_p4_never_at_the_end_matches_when_its_time_is_up() -> None:
    bank, signs, others = app()
    sent(begun(bank, signs).never("paid", others).within("5 s"))
    with hr.testing.run(bank) as t:
        t.send(sign(t, 0, "a1"), other(t, 1, "x", key="k"), sign(t, 1, "a2", key="q"), other(t, 7, "x", key="z"))
        t.send(sign(t, 2, "x", key="q"), sign(t, 5.999, "x", key="z"))
        assert t.read("out") == []
        t.send(sign(t, 6, "x", key="z"))

        assert values(t, "out", "key, a_value") == [("q", 2)]
        (record,) = t.records("out")
        assert record.time == sign(t, 6, "x").at - timedelta(microseconds=1)


# Rule P5: conditions, and what comes out


def test_p5_conditions_over_earlier_rows_of_another_stream() -> None:
    bank, signs, others = app()
    travel = begun(bank, signs).then("b", others, where="b.what <> a.note and price > 2").within("1 min")
    sent(travel)
    (flag_a, flag_b), (condition,) = travel._node.flags, travel._node.conditions
    assert (str(flag_a.test), str(flag_b.test)) == (A, "price > 2")  # over the row alone: before the step
    assert str(condition.test) == "others.what <> last(a.note)"
    with hr.testing.run(bank) as t:
        t.send(Sign("k", "a", 1, t.time("10:00"), "home"))
        t.send(other(t, 1, "home", "3.00"), other(t, 2, "away", "2.00"), other(t, 3, "away", "2.01"))
        t.end()

        assert [row.b_at for row in t.read("out")] == [other(t, 3, "x").at]


@pytest.mark.parametrize(
    ("condition", "wanted"),
    [
        ("value > 2 * avg(a.value)", [4]),
        ("value > sum(a.value)", [4]),
        ("value < min(a.value)", [0]),
        ("value > max(a.value) and count(a) = 2", [3]),
        ("value = first(a.value)", [1]),
        ("value = a.value", [2]),
        ("value - last(a.value) = 1 and count(a.note) = 0", [3]),
    ],
)
def test_p5_conditions_over_all_rows_of_a_step(condition: str, wanted: list[int]) -> None:
    bank, signs, _ = app()
    sent(begun(bank, signs).times(2).then("b", where=f"{B} and {condition}").within("1 min"))

    assert [value for (value,) in found(bank, "a1 a2 b0 b1 b2 b3 b4", "b_value")] == wanted


def test_p5_a_step_may_ask_for_its_own_rows_so_far() -> None:
    """Rising values: each more than the one before it."""
    bank, signs, _ = app()
    rising = bank.pattern("p", key="key", select="list(a.value) as took").first(
        "a", signs, where=f"{A} and (count(a) = 0 or value > last(a.value))"
    )
    sent(rising.times(3).within("1 min"))

    assert found(bank, "a1 a5 a3 a7", "took") == [([1, 5, 7],)]


def test_p5_what_does_not_fit_is_not_true() -> None:
    bank, signs, _ = app()
    sent(begun(bank, signs).then("b", where=f"{B} and value * a.value > 0").within("1 min"))

    assert found(bank, f"a{2**62} b4 b1", "b_value") == [(1,)]


def test_p5_a_row_whose_own_condition_does_not_fit_is_a_dead_letter() -> None:
    bank, signs, _ = app()
    sent(begun(bank, signs).then("b", where="value * 4 > 0").within("1 min"))
    with hr.testing.run(bank) as t:
        send(t, f"a1 b{2**62} b1")
        t.end()

        assert [dead.reason for dead in t.dead()] == ["does-not-fit"]
        assert values(t, "out", "b_value") == [(1,)]


def test_output_columns_are_chosen_from_named_rows() -> None:
    bank, signs, others = app()
    select = (
        "key, a.value as was, first(a.at) as since, avg(a.value), b.price, count(a) as times, list(a.what) as kinds"
    )
    chosen = begun(bank, signs, select=select.replace("avg(a.value)", "avg(a.value) as mean")).times(2)
    sent(chosen.then("b", others).optional().within("1 min"))
    with hr.testing.run(bank) as t:
        t.send(sign(t, 0, "a1"), sign(t, 1, "a2"), other(t, 2, "x", "9.99"))
        t.end()

        short, long = t.read("out")
        assert (short.key, short.was, short.mean, short.times, short.kinds) == ("k", 2, 1.5, 2, ["a", "a"])
        assert (short.since, short.price, long.price) == (sign(t, 0, "x").at, None, hr.money("9.99"))


# Rows, and what becomes of them


def test_parts_of_one_stream_are_one_input() -> None:
    """A row that both parts contain is one row, so `next` is not disturbed by itself."""
    bank, signs, _ = app()
    low, high = signs.where("value < 3"), signs.where("value > 1")
    sent(bank.pattern("p", key="key", after_match="none").first("a", low).next("b", high).within("1 min"))
    flow = build(bank).flows[0]
    assert [s.name for s in flow.steps] == ["signs", "where-1", "p"]
    assert "where value < 3 or value > 1" in explain(build(bank))

    assert found(bank, "x1 x2 x3 x9", "a_value, b_value") == [(1, 2), (2, 3)]


def test_rows_that_no_part_contains_are_not_part_of_the_pattern() -> None:
    bank, signs, _ = app()
    low, high = signs.where("value < 3"), signs.where("value > 7")
    sent(bank.pattern("p", key="key").first("a", low).next("b", high).within("1 min"))

    assert found(bank, "x1 x5 x9", "a_value, b_value") == [(1, 9)]


def test_d2_a_match_is_known_by_its_rows_and_their_steps() -> None:
    bank, signs, _ = app()
    sent(begun(bank, signs).then("b", where=B).within("1 min"))
    with hr.testing.run(bank) as t:
        send(t, "a1 b1")
        t.end()

        (record,) = t.records("out")
        assert record.id == stable_id("signs", "v1", "p", "k", "match/a=signs/0/0,b=signs/0/1")
        assert record.time == sign(t, 1, "b").at


def test_d3_every_row_is_accounted_for() -> None:
    bank, signs, others = app()
    sent(begun(bank, signs).then("b", others).within("4 s"))
    with hr.testing.run(bank) as t:
        t.send(sign(t, 0, "a1"), sign(t, 1, "x"), other(t, 2, "x"), sign(t, 3, "a2"))
        held = t.counts("p")
        t.end()

        assert held.received == held.used + held.held
        assert (t.counts("p").received, t.counts("p").used, t.counts("p").held) == (4, 4, 0)


@pytest.mark.parametrize(
    ("after", "side", "hold"),
    [("skip past last", "matches", 60), ("none", "matches", 0), ("skip past last", "timeouts", 0)],
)
def test_t6_a_match_may_wait_for_one_that_began_before_it(after: str, side: str, hold: int) -> None:
    bank, signs, _ = app()
    pattern = begun(bank, signs, after).then("b", where=B).within("1 min")
    counted = getattr(pattern, side).window(hr.tumbling("1 h"), lateness="0 s").agg(times=hr.count())
    counted.to(bank.topic("out"))

    assert build(bank).flows[0].steps[-1].hold == timedelta(seconds=hold)


def test_t6_nothing_that_comes_out_is_late_for_the_next_step() -> None:
    """a2 c waits for a1, which the first b ends: it is dated 3 s before the watermark it comes out at."""
    bank, signs, _ = app()
    one = bank.pattern("p", key="key", after_match="next").first("a", signs, where=A).then("c", where="value = a.value")
    one.within("10 s").matches.window(hr.tumbling("1 s"), lateness="0 s").agg(times=hr.count()).to(bank.topic("out"))
    with hr.testing.run(bank) as t:
        send(t, "a1 a2 c2 x x x c1")
        t.end()

        assert [row.times for row in t.read("out")] == [1, 1]
        assert t.counts("window-1").late == 0


def test_more_partial_matches_than_the_limit_are_refused_loudly() -> None:
    bank, signs, _ = app()
    begun(bank, signs).then("b", where=B).within("1 h").matches.to(bank.topic("out"))
    plan = build(bank)
    (flow,) = plan.flows
    small = replace(flow, steps=tuple(replace(s, node=_limited(s.node)) for s in flow.steps))
    engine = Engine(Plan(app=plan.app, version=plan.version, flows=(small,)), small)
    with hr.testing.run(bank) as t:
        kinds = ["a", "a", "a", "b"]
        rows = [Arrival(n, 0, 0, n, ("k", kind, n, t.time("10:00"), None)) for n, kind in enumerate(kinds)]
    engine.batch(Batch(rows, END, 0))

    assert [(dead.origin, dead.cause, dead.step, dead.reason) for dead in engine.dead] == [
        ("signs", "signs/0/2", "p", "refused")
    ]
    assert len(engine.records) == 2


def _limited(node: declared.Node) -> declared.Node:
    return replace(node, limit=2) if isinstance(node, declared.Pattern) else node
