"""The Scala joins say what the Python joins say: thousands of random schedules, run by both, compared exactly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from headrace.spark.session import Spark
from headrace.steps import current
from headrace.steps.row import Row
from headrace.steps.version import Enriched, Version
from tests.jvm.agreeing import Case, Given, check
from tests.properties import DEPTH
from tests.spark.schedules import SECOND, Pace, pace_of

CASES = 1_500 * DEPTH
TOPICS = ("orders", "payments")
TYPES = (("string", "bigint"), ("bigint", "string", "double"))  # of input 0 and input 1
DERIVED = 1_000


def test_current(spark: Spark) -> None:
    check(spark, [case_of(Random(seed), current_spec) for seed in range(CASES)], CurrentModel)


def case_of(random: Random, spec_of: Callable[[Random], dict[str, Any]], pace: list[Pace] | None = None) -> Case:
    """A key's life under a spec; the rows of input 1 of a join with a table may be tombstones."""
    spec = spec_of(random)
    pace = pace or pace_of(random, random.randint(1, 7), random.choice((-2, 1_000)) * SECOND)
    tombstones = spec["step"] != "interval_join"
    keyed = random.random() < 0.9
    offsets = iter(range(10_000))
    batches = []
    for at in pace:
        rows: list[list[Any]] = []
        for _ in range(random.choice((0, 1, 2, 3, 8))):
            input = random.randint(0, 1)
            if rows and random.random() < 0.1:  # a self join: the same row on both sides
                rows.append([1 - rows[-1][0], *rows[-1][1:6], _values(random, 1 - rows[-1][0])])
                continue
            time = at.top + random.choice((0, random.randint(-40, 5) * SECOND, random.randint(-4_000, 4_000)))
            derived = random.random() < 0.2
            rows.append([
                input, time, DERIVED + input if derived else input, 0 if derived else random.randint(0, 2),
                0 if derived else next(offsets), random.randbytes(16).hex() if derived else "",
                None if input and tombstones and random.random() < 0.25 else _values(random, input),
            ])  # fmt: skip
        batches.append({"rows": rows, "before": at.before, "watermark": at.watermark, "clock": at.clock})
    both = [*TYPES[0], *TYPES[1]]
    return {"spec": spec, "inputs": TYPES, "ports": {0: both}, "topics": TOPICS, "keyed": keyed, "batches": batches}


def _values(random: Random, input: int) -> list[Any]:
    made = {
        "string": random.choice(("", "a", "long enough for more than eight bytes", "ä")),
        "bigint": random.randint(-5, 5),
        "double": random.choice((0.0, 1.5, -2.25)),
    }
    return [None if random.random() < 0.15 else made[name] for name in TYPES[input]]


def current_spec(random: Random) -> dict[str, Any]:
    return current.Spec(keep=random.choice((0, 1, 5, 60)) * SECOND).as_json()


@dataclass
class CurrentModel:
    case: Case

    def __post_init__(self) -> None:
        self.spec = current.Spec(keep=self.case["spec"]["keep"])

    def fresh(self) -> current.State:
        return current.State()

    def step(self, state: current.State, row: Row, input: int, before: int | None) -> tuple[str, list[Given]]:
        if input == 1:
            return current.learn(self.spec, state, Version(row.order, row.args)), []
        verdict, made = current.step(self.spec, state, row)
        return verdict, enriched(made)

    def unkeyed(self, row: Row, input: int, before: int | None) -> tuple[str, list[Given]]:
        return "used", [] if input else enriched([Enriched(row, None)])

    def on_time(self, state: current.State, watermark: int | None, clock: int) -> tuple[list[Given], int]:
        made, used = current.on_time(self.spec, state, watermark)
        return enriched(made), used

    def due(self, state: current.State) -> int | None:
        return current.due(self.spec, state)


def enriched(rows: list[Enriched]) -> list[Given]:
    nothing = (None,) * len(TYPES[1])
    return [
        [0, one.row.time, one.row.order[3], one.row.cause, [*one.row.args, *(one.values or nothing)]] for one in rows
    ]
