"""From what is declared to the step: random patterns, said with the verbs, become the automaton that they are."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from random import Random
from typing import Any

import pytest

import headrace as hr
from headrace.model.pattern_check import MOST_ROWS
from headrace.steps.pattern_nfa import MOST_POSITIONS, Nfa, compiled
from headrace.steps.pattern_steps import Group, Step, is_never
from headrace.steps.spec import step_of
from tests.properties import DEPTH
from tests.reference.signs import app
from tests.steps.random_patterns import Item, pattern_of
from tests.steps.test_pattern import LETTERS, fits


@pytest.mark.parametrize("seed", range(30 * DEPTH))
def test_p2_what_the_verbs_say_is_the_automaton(seed: int) -> None:
    steps = pattern_of(Random(seed), lambda random: fits(random.choice("abcd")))
    bank, signs, _ = app()

    said = sequence(bank.pattern("p", key="key").first, steps, signs).within("30 s")

    node = said.matches.node
    spec = step_of(node)[1]
    wanted = compiled(steps, 30_000_000)
    assert shown(spec.nfa, lambda flag: str(node.flags[flag].test)) == shown(wanted, letter)


def test_a_declaration_is_refused_where_the_automaton_would_be() -> None:
    assert MOST_ROWS == MOST_POSITIONS


def sequence(begin: Callable[..., Any], items: tuple[Item, ...], signs: hr.Stream) -> Any:
    said: Any = None
    for item in items:
        verb = begin if said is None else getattr(said, item.how)
        said = repeated(item, verb(*what(item, signs), **how(item)))
    return said


def what(item: Item, signs: hr.Stream) -> tuple[Any, ...]:
    return (sequence(hr.group, item.steps, signs),) if isinstance(item, Group) else (item.name, signs)


def how(item: Item) -> dict[str, Any]:
    said: dict[str, Any] = {} if item.within is None else {"within": timedelta(microseconds=item.within)}
    return said if isinstance(item, Group) else said | {"where": letter(item.criterion.flag)}


def repeated(item: Item, said: Any) -> Any:
    if is_never(item):
        return said
    said = said.times(item.least) if item.most in (None, item.least) else said.times(item.least, item.most)
    said = said.or_more() if item.most is None else said
    said = {"then": said, "next": said.consecutive(), "then_any": said.any()}[item.inner]
    said = said.optional() if item.optional else said
    if isinstance(item, Step):
        said = said.greedy() if item.greedy else said
        said = said.until(letter(item.until.flag)) if item.until else said
    return said


def letter(flag: int | None) -> str:
    assert flag is not None
    return f"what = '{LETTERS[flag]}'"


def shown(nfa: Nfa, told: Callable[[int], str]) -> str:
    """As text, with conditions in place of the numbers of flags."""
    return re.sub(r"'flag': (\d+)", lambda found: f"'flag': {told(int(found[1]))}", str(nfa.as_json()))
