"""The Scala pattern says what the Python pattern says: random patterns of the whole grammar over random schedules."""

from __future__ import annotations

from headrace.spark.session import Spark
from headrace.steps.pattern_slots import Slot
from headrace.steps.pattern_state import NONE, Spec
from headrace.steps.pattern_steps import FIRST, THEN, THEN_ANY, Step
from tests.jvm.agreeing import check, run_scala
from tests.jvm.patterning import REFUSALS, TIMEOUTS, Model, batches_of, case_of, model_of, row_of, shaped
from tests.properties import DEPTH
from tests.steps.test_pattern import SECOND, fits

CASES = 2_500 * DEPTH


def test_patterns_of_the_whole_grammar(spark: Spark) -> None:
    check(spark, [case_of(seed) for seed in range(CASES)], model_of)


def test_eight_thousand_partial_matches_of_a_key_are_handled_and_those_beyond_the_limit_refused(spark: Spark) -> None:
    """Every subset of thirteen rows is open; a fourteenth would double them. They share the rows they hold."""
    steps = (
        Step(name="a", how=FIRST, criterion=fits("a")),
        Step(name="b", how=THEN_ANY, criterion=fits("b"), most=None, inner=THEN_ANY),
        Step(name="c", how=THEN, criterion=fits("c")),
    )
    spec = Spec(steps=steps, within=60 * SECOND, after=NONE, output=(Slot(fn="count"),))
    rows = [row_of(word, at, at) for at, word in enumerate(["a", *["b"] * 14, "c"])]
    times = [(rows[:10], 9_500), (rows[10:14], 13_500), (rows[14:15], 14_500), (rows[15:], 15_500), ([], 60_000)]
    case = shaped(spec, ["bigint"], batches_of(times))

    check(spark, [case], lambda _: Model(spec))

    two, three, four, last = run_scala(spark, [case])[0][1:]
    assert (two["held"], len(two["given"])) == (14, 0)
    assert [given[0] for given in three["given"]] == [REFUSALS]
    assert len(four["given"]) == 9_999
    assert ({given[0] for given in last["given"]}, last["held"]) == ({TIMEOUTS}, 0)
