"""Random patterns over random lives of a key, and the Python pattern in the words of RowStep.scala.

A row has the flags of tests/steps/test_pattern.py, then a column of every kind that slots are asked of.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any, NamedTuple

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
from headrace.steps.pattern_steps import Criterion
from headrace.steps.row import Row
from tests.jvm.agreeing import Case, Given
from tests.steps.random_patterns import pattern_of
from tests.steps.test_pattern import LETTERS, SECOND, fits

KINDS = ("int", "decimal", "float", "text", "time")
TYPES = ("bigint", "decimal(18,2)", "double", "string", "timestamp")
LAYOUT = ("boolean",) * len(LETTERS) + TYPES
TOPICS = ("logins", "payments")
MATCHES, TIMEOUTS, REFUSALS = 0, 4, 5  # ports

Beat = tuple[int, int | None]
"""Of a batch: the second its rows are about, and the watermark after it, ms."""


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
        raise AssertionError("every row has a key")

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


def model_of(case: Case) -> Model:
    return Model(pattern_for(case["seed"])[0])


# Random patterns: conditions and outputs over slots of every kind.


def pattern_for(seed: int) -> tuple[Spec, list[str], list[Asked]]:
    """The spec, the types of its output, and its conditions."""
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
        asks=tuple(one.slots for one in asked),
        conditions=tuple(one.test for one in asked),
        output=tuple(slot for slot, _ in slots),
    )
    return spec, [type for _, type in slots], asked


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


class Asked(NamedTuple):
    """A condition, the types of its slots, and how jvm/PureRows.scala reads it: [left, operator, right, type]."""

    slots: tuple[Slot, ...]
    test: Condition
    types: list[str]
    told: list[Any]


def condition_of(random: Random, names: list[str]) -> Asked:
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
    return Asked(slots, condition(slots, test), [one, other], [left, "<" if less else "=", right, other])


# Random schedules.


def case_of(seed: int, beats: list[Beat] | None = None) -> Case:
    spec, types, conditions = pattern_for(seed)
    random = Random(seed + 1_000_000)
    beats = beats_of(random, random.randint(1, 5), 0) if beats is None else beats
    times: list[tuple[list[list[Any]], int | None]] = []
    offset = 0
    for top, watermark in beats:
        rows = []
        for _ in range(random.choice((0, 1, 2, 4, 6))):
            at = top + random.choice((0, 0, 1, 1, 2, 3, -1, -3, -6))
            word = random.choice(("a", "a", "b", "b", "c", "ab", "bc", "abc", "abc", "bu", "u", "x"))
            rows.append(row_of(word, at, offset, random, nan=bool(spec.numbers)))
            offset += 1
        times.append((rows, watermark))
    times.append(([], beats[-1][0] * 1_000 + 100_000))
    told = [one.told for one in conditions]
    return shaped(spec, types, batches_of(times)) | {"conditions": told, "seed": seed}


def beats_of(random: Random, count: int, start: int) -> list[Beat]:
    """Time goes on by a few seconds a batch; now and then the watermark stays."""
    beats: list[Beat] = []
    top, watermark = start, None
    for _ in range(count):
        top += random.choice((0, 1, 3, 5))
        if random.random() < 0.8:
            watermark = max(watermark or 0, (top - random.choice((0, 1, 3))) * 1_000 + random.choice((0, 0, 1)))
        beats.append((top, watermark))
    return beats


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
