"""Patterns equal a naive matcher: every assignment of rows tried by the definition, then the policy applied."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.steps import pattern
from headrace.steps.pattern_state import NONE, PAST_LAST, TO_FIRST, TO_LAST, TO_NEXT, Found, Spec, State
from headrace.steps.pattern_steps import NEVER, NEVER_NEXT, NEXT, THEN, Criterion, Group, Step
from headrace.steps.row import HELD, Row
from tests.steps.driving import drive
from tests.steps.random_patterns import Item, pattern_of
from tests.steps.test_pattern import SECOND, fits, word

Path = tuple[tuple[str, int], ...]  # (step, number of the row)


@dataclass(frozen=True)
class Way:
    """What a way from the last row to the next one has met on its way: nevers, greedy steps it has left or passed."""

    nevers: tuple[Step, ...] = ()
    greedy: tuple[Step, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """A path that ended: a match, or one that waits. `at`: (micros, 0) when time is up, (micros, 1 + row) at a row."""

    path: Path
    at: tuple[int, int]
    match: bool = False
    by_time: bool = False


class Naive:
    """Walks the pattern as it is declared and tries every row for every step."""

    def __init__(self, spec: Spec, rows: list[Row]) -> None:
        self.spec, self.rows = spec, rows
        self.outcomes: list[Outcome] = []

    def run(self) -> list[Outcome]:
        self._sequence(self.spec.steps, (), Way(), self._at_end, None)
        return self.outcomes

    # Walking: `go(path, way)` is what comes after.

    def _sequence(self, items: tuple[Item, ...], path: Path, way: Way, go: Callable[[Path, Way], None],
                  reached: tuple[str, int | None] | None) -> None:  # fmt: skip
        """`reached`: how the first row of it is reached, if it is a group's."""
        if not items:
            go(path, way)
            return
        item, rest = items[0], items[1:]
        if isinstance(item, Step) and item.how in (NEVER, NEVER_NEXT):
            self._sequence(rest, path, replace(way, nevers=(*way.nevers, item)), go, reached)
            return
        after = []
        for other in rest:
            if other.how not in (NEVER, NEVER_NEXT):
                break
            after.append(other)

        def on(later: Path, met: Way) -> None:
            self._sequence(rest, later, met, go, reached if len(later) == len(path) else None)

        if item.optional:
            greedy = (item,) if isinstance(item, Step) and item.greedy else ()
            on(path, replace(way, greedy=way.greedy + greedy))
        self._repeat(item, 1, path, way, on, tuple(after), reached)

    def _repeat(self, item: Item, count: int, path: Path, way: Way, on: Callable[[Path, Way], None],
                after: tuple[Any, ...], reached: tuple[str, int | None] | None) -> None:  # fmt: skip
        how, within = (item.how if count == 1 else item.inner), item.within
        if reached is not None and count == 1:
            how, within = reached[0], _least(reached[1], within)

        def once(later: Path, met: Way) -> None:
            can_go_on = item.most is None or count < item.most
            if count >= item.least:
                left = (item,) if isinstance(item, Step) and item.greedy and can_go_on else ()
                on(later, replace(met, greedy=met.greedy + left))
            if can_go_on:
                self._repeat(item, count + 1, later, replace(met, nevers=met.nevers + after), on, after, None)

        if isinstance(item, Group):
            self._sequence(item.steps, path, way, once, (how, within))
        else:
            self._take(item, how, within, count > 1, path, way, once)

    # Trying rows.

    def _take(self, step: Step, how: str, within: int | None, repeats: bool, path: Path, way: Way,
              go: Callable[[Path, Way], None]) -> None:  # fmt: skip
        if not path:
            for number in range(len(self.rows)):
                greedy = any(self._is(s, number, path) and not self._ends(s, number, path) for s in way.greedy)
                if self._is(step, number, path) and not self._ends(step, number, path) and not greedy:
                    go(((step.name, number),), Way())
            return
        bound = self._bound(path, within)
        greedy = way.greedy
        for number in range(path[-1][1] + 1, len(self.rows)):
            row = self.rows[number]
            if bound is not None and row.time >= bound:
                break
            at = (row.time, 1 + number)
            greedy = tuple(s for s in greedy if not self._ends(s, number, path))
            if self._never(way, number, path) or any(self._is(s, number, path) for s in greedy):
                self.outcomes.append(Outcome(path, at))
                return
            ends = self._ends(step, number, path)
            if repeats and ends:
                self.outcomes.append(Outcome(path, at))
                return
            is_it = self._is(step, number, path)
            if is_it and not ends:
                go((*path, (step.name, number)), Way())
            if how == NEXT or (how == THEN and is_it):
                self.outcomes.append(Outcome(path, at))
                return
        if bound is not None:
            self.outcomes.append(Outcome(path, (bound, 0), by_time=True))

    def _at_end(self, path: Path, way: Way) -> None:
        if not way.nevers:
            number = path[-1][1]
            self.outcomes.append(Outcome(path, (self.rows[number].time, 1 + number), match=True))
            return
        own = [never.within for never in way.nevers if never.within is not None]
        bound = self._bound(path, max(own) if len(own) == len(way.nevers) else None)
        for number in range(path[-1][1] + 1, len(self.rows)):
            row = self.rows[number]
            if bound is not None and row.time >= bound:
                break
            if self._never(way, number, path):
                self.outcomes.append(Outcome(path, (row.time, 1 + number)))
                return
            if all(s.how == NEVER_NEXT for s in way.nevers):
                self.outcomes.append(Outcome(path, (row.time, 1 + number), match=True))
                return
        assert bound is not None
        self.outcomes.append(Outcome(path, (bound, 0), match=True, by_time=True))

    def _never(self, way: Way, number: int, path: Path) -> bool:
        last = path[-1][1]
        for never in way.nevers:
            far = never.within is not None and self.rows[number].time - self.rows[last].time >= never.within
            if not far and (never.how == NEVER or number == last + 1) and self._is(never, number, path):
                return True
        return False

    def _is(self, step: Step, number: int, path: Path) -> bool:
        return self._meets(step.criterion, number, path)

    def _ends(self, step: Step, number: int, path: Path) -> bool:
        return step.until is not None and self._meets(step.until, number, path)

    def _meets(self, criterion: Criterion, number: int, path: Path) -> bool:
        args = self.rows[number].args
        if criterion.flag is not None and not args[criterion.flag]:
            return False
        named = {
            step.name: [self.rows[n].args for name, n in path if name == step.name] for step in self.spec.nfa.steps
        }
        return criterion.condition is None or bool(self.spec.conditions[criterion.condition](args, named))

    def _bound(self, path: Path, within: int | None) -> int | None:
        whole = None if self.spec.within is None else self.rows[path[0][1]].time + self.spec.within
        return _least(whole, None if within is None else self.rows[path[-1][1]].time + within)


def _least(*bounds: int | None) -> int | None:
    return min((bound for bound in bounds if bound is not None), default=None)


Told = list[tuple[str, Path]]


def naive(spec: Spec, rows: list[Row]) -> Told:
    """Matches in order; with the policy `none` timeouts too, in the order of their moments."""
    rows = sorted(rows, key=lambda row: row.order)
    outcomes = Naive(spec, rows).run()
    first = {one.path: one.at for one in sorted(outcomes, key=lambda one: one.at, reverse=True) if one.match}
    matches = sorted((at, _numbers(spec, path), path) for path, at in first.items())
    if spec.after == NONE:
        last = {one.path: one for one in sorted(outcomes, key=lambda one: one.at) if one.path not in first}
        over = [(one.at, "timeout", _numbers(spec, one.path), one.path) for one in last.values() if one.by_time]
        told = sorted(over + [(at, "match", numbers, path) for at, numbers, path in matches], key=_moment)
        return [(kind, path) for _, kind, _, path in told]
    found: Told = []
    barred = -1  # what begins up to here is gone
    for _, _, path in sorted(matches, key=lambda one: one[2][0][1]):
        if path[0][1] > barred:
            found.append(("match", path))
            barred = max(barred, _skipped(spec, path))
    return found


def _moment(told: tuple[tuple[int, int], str, Any, Path]) -> Any:
    """Rule D4: by moment, timeouts first, then by rows."""
    at, kind, numbers, _ = told
    return at, kind == "match", numbers


def _skipped(spec: Spec, path: Path) -> int:
    """The last row that a partial match may not begin with any more."""
    if spec.after == TO_NEXT:
        return path[0][1]
    if spec.after == PAST_LAST:
        return path[-1][1]
    named = [number for name, number in path if name == spec.to]
    return -1 if not named else (named[0] if spec.after == TO_FIRST else named[-1]) - 1


def _numbers(spec: Spec, path: Path) -> tuple[tuple[int, int], ...]:
    names = [step.name for step in spec.nfa.steps]
    return tuple((number, names.index(name)) for name, number in path)


def told(spec: Spec, found: list[Found], rows: list[Row]) -> Told:
    number = {row.order: n for n, row in enumerate(sorted(rows, key=lambda row: row.order))}
    return [(one.kind, tuple((name, number[row.order]) for name, row in one.rows)) for one in found]


# Random patterns and rows.

CONDITIONS: tuple[Callable[[tuple[Any, ...], dict[str, list[tuple[Any, ...]]]], bool], ...] = (
    lambda args, named: sum(len(rows) for rows in named.values()) % 2 == 1,
    lambda args, named: all(args[-1] >= row[-1] for rows in named.values() for row in rows),
)


def criterion(random: Random) -> Criterion:
    found = fits(random.choice("abc"))
    return found if random.random() < 0.85 else replace(found, condition=random.randrange(len(CONDITIONS)))


def spec_of(random: Random) -> Spec:
    steps = pattern_of(random, criterion)
    spec = Spec(steps=steps, within=random.choice([4, 8, 60]) * SECOND, conditions=CONDITIONS)
    after = random.choice([NONE, NONE, TO_NEXT, PAST_LAST, TO_FIRST, TO_LAST])
    return replace(spec, after=after, to=random.choice([step.name for step in spec.nfa.steps]))


def rows_of(random: Random) -> list[Row]:
    rows, time = [], 0
    for at in range(random.randint(2, 8)):
        text = random.choice(["a", "a", "b", "b", "c", "ab", "bc", "abc", "abc", "bu", "u", "x"])
        time += random.choice([0, 1, 1, 2]) * SECOND
        rows.append(word(text, time, at, random.randint(0, 3))._replace(cause=f"{text}{at}"))
    return rows


def equals_naive(random: Random) -> None:
    spec, rows = spec_of(random), rows_of(random)
    result = drive(pattern, spec, [(rows, 1_000_000)])
    found = told(spec, result.results, rows)  # type: ignore[arg-type]
    if spec.after != NONE:
        found = [one for one in found if one[0] == "match"]

    assert found == naive(spec, rows), (spec, rows)
    assert len({one.cause for one in result.results}) == len(result.results)  # rule D2
    assert result.held == 0


def same_for_every_cut(random: Random) -> None:
    """No row is late: each comes before the watermark passes it. The state is kept as JSON after every batch."""
    spec, rows = spec_of(random), rows_of(random)
    wanted = drive(pattern, spec, [(rows, 1_000_000)]).results
    left = random.sample(rows, len(rows))
    state, watermark, found = State(), None, []
    while left:
        count = random.randint(1, len(left))
        batch, left = left[:count], left[count:]
        for row in sorted(batch, key=lambda row: row.order):
            assert pattern.step(spec, state, row, watermark) == HELD
        safe = min((row.time for row in left), default=100 * SECOND) // 1_000
        watermark = random.randint(watermark or 0, safe)
        found += pattern.on_time(spec, state, watermark, 0)[0]
        kept = state.as_json()
        state = State.from_json(json.loads(json.dumps(kept)))
        assert state.as_json() == kept
    found += pattern.on_time(spec, state, 1_000_000, 0)[0]
    assert found == wanted, (spec, rows)
    assert state.empty


def same_by_arrival(random: Random) -> None:
    """Rows in event-time order, time passing between them: the modes differ in nothing but when they speak."""
    spec, rows = spec_of(random), rows_of(random)
    state, found = State(), []
    arrival = replace(spec, arrival=True)
    for row in rows:
        found += pattern.on_time(arrival, state, row.time // 1_000, 0)[0]
        assert pattern.step(arrival, state, row, None) == HELD
        found += pattern.take(state)[0]
    found += pattern.on_time(arrival, state, 1_000_000, 0)[0]
    assert found == drive(pattern, spec, [(rows, 1_000_000)]).results, (spec, rows)
    assert state.empty


def holds_for(property: Callable[[Random], None], seeds: int) -> None:
    for seed in range(seeds):
        try:
            property(Random(seed))
        except AssertionError as error:
            error.add_note(f"seed {seed}")
            raise


def test_patterns_equal_every_assignment_tried_by_the_definition() -> None:
    holds_for(equals_naive, 3_000)


def test_r4_every_cut_into_batches_finds_the_same_in_the_same_order() -> None:
    holds_for(same_for_every_cut, 1_500)


def test_r5_rows_that_arrive_in_order_find_the_same() -> None:
    holds_for(same_by_arrival, 1_000)


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False), st.sampled_from([equals_naive, same_for_every_cut, same_by_arrival]))
def test_the_same_for_whatever_hypothesis_thinks_of(random: Random, property: Callable[[Random], None]) -> None:
    property(random)
