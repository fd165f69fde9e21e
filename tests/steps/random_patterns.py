"""Random patterns from the whole grammar: ways to be reached and repeated, nevers, groups, bounds between steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random
from typing import Any

from headrace.steps.pattern_steps import FIRST, NEVER, NEVER_NEXT, NEXT, THEN, THEN_ANY, Criterion, Group, Step
from tests.steps.test_pattern import SECOND, fits

Item = Step | Group


def pattern_of(random: Random, criterion: Callable[[Random], Criterion]) -> tuple[Item, ...]:
    """Steps named s0, s1, ...; rows with the letter u end a repetition. It wants a `within` of the whole."""
    steps = _steps(random, iter([f"s{n}" for n in range(60)]), 1, criterion)
    if random.random() < 0.3 and len(steps) > 1 and not steps[1].optional and steps[1].how not in (NEVER, NEVER_NEXT):
        steps = (replace(steps[0], optional=True), *steps[1:])
    return steps


def _steps(
    random: Random, names: Iterator[str], depth: int, criterion: Callable[[Random], Criterion]
) -> tuple[Item, ...]:
    """One to three steps, the first not optional; in the depth, groups of them."""
    found: list[Item] = []
    for at in range(random.randint(1, 3)):
        often = random.choice([(1, 1)] * 5 + [(2, 2), (1, 2), (2, 3), (1, None), (1, None), (2, None)])
        shared: dict[str, Any] = {
            "how": FIRST if at == 0 else random.choice([NEXT, THEN, THEN, THEN_ANY]),
            "least": often[0],
            "most": often[1],
            "inner": THEN if often == (1, 1) else random.choice([THEN, THEN, NEXT, THEN_ANY]),
            "within": random.choice([None] * 8 + [3 * SECOND]),
            "optional": at > 0 and random.random() < 0.3,
        }
        if depth and random.random() < 0.25:
            found.append(Group(steps=_steps(random, names, depth - 1, criterion), **shared))
        else:
            until = fits("u") if often[1] is None and random.random() < 0.4 else None
            greedy = often != (1, 1) and random.random() < 0.5
            found.append(Step(name=next(names), criterion=criterion(random), greedy=greedy, until=until, **shared))
        for _ in range(random.choice([0, 0, 0, 0, 0, 1, 1, 2])):
            how = random.choice([NEVER, NEVER, NEVER_NEXT])
            bound = random.choice([None, None, 2 * SECOND])
            found.append(Step(name=next(names), how=how, criterion=criterion(random), within=bound))
    return tuple(found)
