"""Slots: what earlier rows say to conditions and outputs, as a table; and rows that cannot be counted."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.steps import pattern
from headrace.steps.pattern_slots import Slot, condition, numbers, output
from headrace.steps.pattern_state import NONE, Found, Spec, State
from headrace.steps.pattern_steps import FIRST, THEN, Criterion, Step
from headrace.steps.row import HELD, NAN, Row
from tests.steps.driving import drive

MISS = Criterion(flag=0)


def row(at: int, miss: bool, value: Any) -> Row:
    return Row(at, (at, 0, 0, at, ""), (miss, value), f"r{at}")


@pytest.mark.parametrize(
    ("slot", "some", "none"),
    [
        (Slot(fn="first", step="miss", column=1, of="int"), 10, None),
        (Slot(fn="last", step="miss", column=1, of="int"), 30, None),
        (Slot(fn="list", step="miss", column=1, of="int"), [10, 30], []),
        (Slot(fn="count", step="miss"), 3, 0),
        (Slot(fn="count", step="miss", column=1, of="int"), 2, 0),
        (Slot(fn="sum", step="miss", column=1, of="int"), 40, None),
        (Slot(fn="avg", step="miss", column=1, of="int"), 20.0, None),
        (Slot(fn="avg", step="miss", column=1, of="decimal", precision=22), 200_000, None),
        (Slot(fn="min", step="miss", column=1, of="int"), 10, None),
        (Slot(fn="max", step="miss", column=1, of="int"), 30, None),
    ],
)
def test_p5_slots_over_the_rows_of_a_step(slot: Slot, some: Any, none: Any) -> None:
    taken = [("miss", row(at, True, value)) for at, value in enumerate((10, None, 30))]

    assert output((slot,), taken) == (some,)
    assert output((slot,), [("other", row(0, True, 5))]) == (none,)


def test_a_slot_without_a_step_is_over_all_rows() -> None:
    taken = [("one", row(0, True, 1)), ("two", row(1, True, 2))]
    assert output((Slot(fn="first", column=1, of="int"), Slot(fn="count")), taken) == (1, 2)


def test_a_null_is_what_first_and_last_say() -> None:
    taken = [("one", row(0, True, None))]
    assert output((Slot(fn="last", step="one", column=1, of="int"),), taken) == (None,)


def test_p5_a_condition_sees_the_row_in_its_turn_then_its_slots() -> None:
    """A miss twice as large as those before it on average."""
    asks = (Slot(fn="avg", step="miss", column=1, of="int"),)
    large = condition(asks, lambda values: None if values[2] is None else values[1] >= 2 * values[2])
    steps = (
        Step(name="miss", how=FIRST, criterion=MISS, least=2, most=2),
        Step(name="large", how=THEN, criterion=Criterion(flag=0, condition=0)),
    )
    spec = Spec(steps=steps, asks=(asks,), conditions=(large,), after=NONE)
    rows = [row(at, True, value) for at, value in enumerate((10, 20, 29, 60))]

    found: list[Found] = drive(pattern, spec, [(rows, 1_000)]).results  # type: ignore[assignment]

    assert [[one.args[1] for _, one in match.rows] for match in found] == [[10, 20, 60], [20, 29, 60]]


def test_b3_a_float_that_is_no_number_is_refused_where_a_number_is_asked_for() -> None:
    asked = (Slot(fn="sum", column=1, of="float"), Slot(fn="max", column=1, of="float"))
    steps = (Step(name="miss", how=FIRST, criterion=MISS),)
    spec = Spec(steps=steps, output=asked)
    assert spec.numbers == (1,)
    for by in (spec, Spec(steps=steps, output=asked, arrival=True)):
        state = State()
        assert pattern.step(by, state, row(0, True, float("nan")), None) == NAN
        assert pattern.step(by, state, row(1, True, None), None) == HELD
    assert numbers((Slot(fn="last", column=1, of="float"), Slot(fn="sum", column=1, of="int"))) == ()
