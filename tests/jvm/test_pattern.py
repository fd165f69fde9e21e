"""The Scala pattern says what the Python pattern says: random patterns of the whole grammar over random schedules.

A row has the flags of tests/steps/test_pattern.py, then a column of every kind that slots are asked of.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from headrace.spark.session import Spark
from headrace.steps import pattern
from headrace.steps.pattern_slots import Args, Condition, Slot, condition, output
from headrace.steps.pattern_state import (
    NONE,
    PAST_LAST,
    REFUSED,
    TIMEOUT,
    TO_FIRST,
    TO_LAST,
    TO_NEXT,
    Found,
    Spec,
    State,
)
from headrace.steps.pattern_steps import FIRST, THEN, THEN_ANY, Criterion, Step
from headrace.steps.row import Row
from tests.jvm.agreeing import Case, Given, check, run_scala
from tests.properties import DEPTH
from tests.steps.random_patterns import pattern_of
from tests.steps.test_pattern import LETTERS, SECOND, fits

CASES = 2_500 * DEPTH
KINDS = ("int", "decimal", "float", "text", "time")
TYPES = ("bigint", "decimal(18,2)", "double", "string", "timestamp")
LAYOUT = ("boolean",) * len(LETTERS) + TYPES
TOPICS = ("logins", "payments")
MATCHES, TIMEOUTS, REFUSALS = 0, 4, 5  # ports


def test_patterns_of_the_whole_grammar(spark: Spark) -> None:
    check(spark, [case_of(seed) for seed in range(CASES)], lambda case: Model(pattern_for(case["seed"])[0]))


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


class Model:
    """pattern.py in the words of RowStep.scala."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec

    def fresh(self) -> State:
        return State()

    def step(self, state: State, row: Row, input: int, before: int | None) -> tuple[str, list[Given]]:
        verdict = pattern.step(self.spec, state, row, before)
        found, state.found = state.found, []
        return verdict, self._told(found)

    def unkeyed(self, row: Row, input: int, before: int | None) -> tuple[str, list[Given]]:
        raise NotImplementedError

    def on_time(self, state: State, watermark: int | None, clock: int) -> tuple[list[Given], int]:
        found, used = pattern.on_time(self.spec, state, watermark, clock)
        return self._told(found), used

    def due(self, state: State) -> int | None:
        return pattern.due(self.spec, state)

    def _told(self, found: list[Found]) -> list[Given]:
        return [self._given(one) for one in found]

    def _given(self, one: Found) -> Given:
        if one.kind == REFUSED:
            row = one.rows[0][1]
            return [REFUSALS, one.time, row.order[3], row.cause, list(row.args)]
        port = TIMEOUTS if one.kind == TIMEOUT else MATCHES
        return [port, one.time, 0, one.cause, list(output(self.spec.output, one.rows))]


# Random patterns: conditions and outputs over slots of every kind.


def pattern_for(seed: int) -> tuple[Spec, list[str], list[list[Any]]]:
    """The spec, the types of its output, and its conditions as the harness reads them."""
    random = Random(seed)
    steps = pattern_of(random, criterion)
    spec = Spec(steps=steps, within=random.choice((4, 8, 60)) * SECOND, after=NONE)
    names = [step.name for step in spec.nfa.steps]
    slots = [slot_of(random, random.choice((*names, ""))) for _ in range(random.randint(0, 4))]
    asked = [condition_of(random, names) for _ in range(2)]
    spec = replace(
        spec,
        after=random.choice((NONE, NONE, TO_NEXT, PAST_LAST, TO_FIRST, TO_LAST)),
        to=random.choice(names),
        arrival=random.random() < 0.3,
        limit=random.choice((2, 5, 10_000, 10_000)),
        asks=tuple(slots for slots, _, _ in asked),
        conditions=tuple(test for _, test, _ in asked),
        output=tuple(slot for slot, _ in slots),
    )
    return spec, [type for _, type in slots], [told for _, _, told in asked]


def criterion(random: Random) -> Criterion:
    found = fits(random.choice("abc"))
    return found if random.random() < 0.8 else replace(found, condition=random.randrange(2))


def slot_of(random: Random, step: str) -> tuple[Slot, str]:
    """A slot and its type."""
    if random.random() < 0.15:
        return Slot(fn="count", step=step), "bigint"
    at = random.randrange(len(KINDS))
    of, type = KINDS[at], TYPES[at]
    fn = random.choice(("first", "last", "list", "count", "min", "max", *(("sum", "avg") if at < 3 else ())))
    precision, made = {
        ("list", of): (0, f"array<{type}>"),
        ("count", of): (0, "bigint"),
        ("sum", "decimal"): (28, "decimal(28,2)"),
        ("avg", "decimal"): (22, "decimal(22,6)"),
        ("avg", "int"): (0, "double"),
    }.get((fn, of), (0, type))
    return Slot(fn=fn, step=step, column=len(LETTERS) + at, of=of, precision=precision), made


def condition_of(random: Random, names: list[str]) -> tuple[tuple[Slot, ...], Condition, list[Any]]:
    """A column of the row in its turn, or a slot, beside a slot of the same type."""
    while True:
        made = [slot_of(random, random.choice(names)) for _ in range(2)]
        (_, one), (_, other) = made
        left = len(LETTERS) + TYPES.index(other) if random.random() < 0.7 and other in TYPES else len(LAYOUT)
        if not other.startswith("array") and (left < len(LAYOUT) or one == other):
            break
    right, less = len(LAYOUT) + 1, random.random() < 0.6

    def test(values: Args) -> bool | None:
        if values[left] is None or values[right] is None:
            return None
        return bool(values[left] < values[right] if less else values[left] == values[right])

    slots = tuple(slot for slot, _ in made)
    return slots, condition(slots, test), [left, "<" if less else "=", right, other]


# Random schedules.


def case_of(seed: int) -> Case:
    spec, types, conditions = pattern_for(seed)
    random = Random(seed + 1_000_000)
    floats_refused = bool(spec.numbers)
    times: list[tuple[list[list[Any]], int | None]] = []
    top, offset, watermark = 0, 0, None
    for _ in range(random.randint(1, 5)):
        rows = []
        for _ in range(random.choice((0, 1, 2, 4, 6))):
            top += random.choice((0, 1, 1, 2))
            at = top - random.choice((0, 0, 0, 0, 1, 2, 6))
            word = random.choice(("a", "a", "b", "b", "c", "ab", "bc", "abc", "abc", "bu", "u", "x"))
            rows.append(row_of(word, at, offset, random, floats_refused))
            offset += 1
        if random.random() < 0.8:
            watermark = max(watermark or 0, (top - random.choice((0, 1, 3))) * 1_000 + random.choice((0, 0, 1)))
        times.append((random.sample(rows, len(rows)), watermark))
    times.append(([], top * 1_000 + 100_000))
    return shaped(spec, types, batches_of(times)) | {"conditions": conditions, "seed": seed}


def row_of(word: str, second: int, offset: int, random: Random | None = None, nan: bool = False) -> list[Any]:
    flags: list[Any] = [letter in word for letter in LETTERS]
    if random is None:
        return [0, second * SECOND, 0, 0, offset, "", [*flags, *[None] * len(TYPES)]]
    values = [
        random.randint(-3, 3),
        random.randint(-300, 300),
        float("nan") if nan and random.random() < 0.1 else random.choice((0.0, 1.5, -2.25, 0.1)),
        random.choice(("", "a", "long enough for more than eight bytes", "ä")),
        random.randint(0, 5) * SECOND,
    ]
    made = [None if random.random() < 0.15 else value for value in values]
    flags = [None if random.random() < 0.02 else flag for flag in flags]
    src, derived = random.randrange(2), random.random() < 0.1
    return [src, second * SECOND, src, 0, offset, random.randbytes(16).hex() if derived else "", [*flags, *made]]


def batches_of(times: list[tuple[list[list[Any]], int | None]]) -> list[dict[str, Any]]:
    befores = [None, *(watermark for _, watermark in times)]
    return [
        {"rows": rows, "before": before, "watermark": watermark, "clock": 0}
        for before, (rows, watermark) in zip(befores, times, strict=False)
    ]


def shaped(spec: Spec, types: list[str], batches: list[dict[str, Any]]) -> Case:
    ports = {MATCHES: types, TIMEOUTS: types, REFUSALS: LAYOUT}
    shape = {"inputs": [LAYOUT, LAYOUT], "ports": ports, "topics": TOPICS, "keyed": True}
    return {"spec": spec.as_json(), **shape, "batches": batches}
