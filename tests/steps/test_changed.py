"""Changed: a row passes when it says something else than the key's last row."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.steps import changed
from headrace.steps.row import FILTERED, USED
from tests.steps.driving import MIN, row

SPEC = changed.Spec(keep=60 * MIN, values=(0,))


def verdicts(*rows: tuple[float, Any]) -> list[str]:
    state = changed.State()
    return [changed.step(SPEC, state, row(int(at * MIN), value), None) for at, value in rows]


def test_the_first_row_passes_and_then_those_that_differ() -> None:
    assert verdicts((0, "SE"), (5, "SE"), (10, "FR"), (11, "FR"), (12, "SE")) == [USED, FILTERED, USED, FILTERED, USED]


def test_rows_are_compared_in_order_of_arrival() -> None:
    assert verdicts((0, "SE"), (10, "FR"), (8, "SE"), (9, "SE"), (11, "FR")) == [USED, USED, USED, FILTERED, USED]


@pytest.mark.parametrize("same", [(None, None), (0.0, -0.0), (float("nan"), float("nan")), (["a"], ["a"])])
def test_null_equals_null_and_what_is_no_number_itself(same: tuple[Any, Any]) -> None:
    assert verdicts((0, same[0]), (1, same[1]), (2, "x")) == [USED, FILTERED, USED]


def test_a_row_that_comes_when_the_last_is_forgotten_passes() -> None:
    assert verdicts((0, "SE"), (59, "SE"), (119, "SE"), (30, "SE")) == [USED, FILTERED, USED, FILTERED]


def test_a_key_is_forgotten_when_its_time_is_up() -> None:
    state = changed.State()
    changed.step(SPEC, state, row(0, "SE"), None)
    changed.step(SPEC, state, row(-MIN, "SE"), None)

    assert changed.due(SPEC, state) == 3_600_000
    changed.on_time(SPEC, state, 3_599_999, 0)
    assert not state.empty
    changed.on_time(SPEC, state, 3_600_000, 0)
    assert state.empty
    assert changed.due(SPEC, state) is None


def test_the_spec_is_plain_json() -> None:
    assert SPEC.as_json() == {"step": "changed", "keep": 60 * MIN, "values": (0,)}
