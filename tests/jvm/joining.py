"""Random lives of a key under a join, and the Python joins in the words of RowStep.scala."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from headrace.steps import as_of, current, interval_join
from headrace.steps.interval_join import Joined
from headrace.steps.row import Row
from headrace.steps.version import Enriched, Version
from tests.jvm.agreeing import Case, Given
from tests.spark.schedules import SECOND, Pace, pace_of

TOPICS = ("orders", "payments")
TYPES = (("string", "bigint"), ("bigint", "string", "decimal(38,0)", "double"))  # of input 0 and input 1
BOTH = [*TYPES[0], *TYPES[1]]
SIDES = ("left", "right")
HOWS = ("inner", "left", "right", "full", "semi", "anti")
DERIVED = 1_000
ROWS, LATE, UNMATCHED = 0, 1, 3


def case_of(
    random: Random, spec_of: Callable[[Random], dict[str, Any]], pace: list[Pace] | None = None, rows: int = 8
) -> Case:
    """A key's life under a spec; the rows of input 1 of a join with a table may be tombstones."""
    spec = spec_of(random)
    pace = pace or pace_of(random, random.randint(1, 7), random.choice((-2, 1_000)) * SECOND)
    tombstones = spec["step"] != "interval_join"
    offsets = iter(range(100_000))
    batches = []
    for at in pace:
        made: list[list[Any]] = []
        for _ in range(random.choice((0, 1, 2, 3, rows))):
            input = random.randint(0, 1)
            if made and random.random() < 0.1 and made[-1][0] == 0:  # a self join: the same row on both sides
                made.append([1, *made[-1][1:6], _values(random, 1)])
                continue
            time = at.top + random.choice((0, random.randint(-40, 5) * SECOND, random.randint(-4_000, 4_000)))
            derived = random.random() < 0.2
            made.append([
                input, time, DERIVED + input if derived else input, 0 if derived else random.randint(0, 2),
                0 if derived else next(offsets), random.randbytes(16).hex() if derived else "",
                None if input and tombstones and random.random() < 0.25 else _values(random, input),
            ])  # fmt: skip
        random.shuffle(made)
        batches.append({"rows": made, "before": at.before, "watermark": at.watermark, "clock": at.clock})
    ports = {ROWS: BOTH, LATE: [*BOTH, "string", "timestamp"], UNMATCHED: [*BOTH, "string"]}
    keyed = random.random() < 0.9
    return {"spec": spec, "inputs": TYPES, "ports": ports, "topics": TOPICS, "keyed": keyed, "batches": batches}


def _values(random: Random, input: int) -> list[Any]:
    made = {
        "string": random.choice(("", "a", "long enough for more than eight bytes", "ä")),
        "bigint": random.randint(-5, 5),
        "decimal(38,0)": random.choice((0, -7, 10**38 - 1)),
        "double": random.choice((0.0, 1.5, -2.25)),
    }
    return [None if random.random() < 0.15 else made[name] for name in TYPES[input]]


def interval_spec(random: Random) -> dict[str, Any]:
    bounds = [random.choice((0, random.randint(-30, 30) * SECOND, random.randint(-9, 9))) for _ in range(2)]
    lower, upper = sorted(bounds)
    unmatched = random.random() < 0.3
    return interval_join.Spec(how=random.choice(HOWS), lower=lower, upper=upper, unmatched=unmatched).as_json()


def as_of_spec(random: Random) -> dict[str, Any]:
    history = random.choice((0, 1, 500_000, 10 * SECOND, 60 * SECOND))
    return as_of.Spec(history=history, wait=random.random() < 0.6, ttl=ttl_of(random)).as_json()


def current_spec(random: Random) -> dict[str, Any]:
    return current.Spec(keep=random.choice((0, 1, 5, 60)) * SECOND, ttl=ttl_of(random)).as_json()


def ttl_of(random: Random) -> int:
    return random.choice((0, 0, 1, 500_000, 10 * SECOND, 60 * SECOND))


def model_of(case: Case) -> IntervalModel | AsOfModel | CurrentModel:
    spec = {name: value for name, value in case["spec"].items() if name != "step"}
    match case["spec"]["step"]:
        case "interval_join":
            return IntervalModel(interval_join.Spec(**spec))
        case "as_of":
            return AsOfModel(as_of.Spec(**spec))
        case _:
            return CurrentModel(current.Spec(**spec))


@dataclass
class IntervalModel:
    spec: interval_join.Spec
    fresh: Callable[[], Any] = field(default=interval_join.State)

    def step(self, state: Any, row: Row, input: int, before: int | None) -> tuple[str, list[Given]]:
        verdict, made = interval_join.step(self.spec, state, row, input, before)
        return verdict, self._given(made)

    def unkeyed(self, row: Row, input: int, before: int | None) -> tuple[str, list[Given]]:
        verdict, made = interval_join.unkeyed(self.spec, row, input, before)
        return verdict, self._given(made)

    def on_time(self, state: Any, watermark: int | None, clock: int) -> tuple[list[Given], int]:
        made, used = interval_join.on_time(self.spec, state, watermark)
        return self._given(made), used

    def due(self, state: Any) -> int | None:
        return interval_join.due(self.spec, state)

    def _given(self, made: list[Joined]) -> list[Given]:
        told = []
        for one in made:
            values = both(one.left and one.left.args, one.right and one.right.args)
            side = 0 if one.left else 1
            if one.matched or self.spec.alone[side]:
                told.append([ROWS, one.time, 0, one.cause, values])
            if not one.matched and self.spec.unmatched:
                told.append([UNMATCHED, one.time, 0, one.cause, [*values, SIDES[side]]])
        return told


@dataclass
class AsOfModel:
    spec: as_of.Spec
    fresh: Callable[[], Any] = field(default=as_of.State)

    def step(self, state: Any, row: Row, input: int, before: int | None) -> tuple[str, list[Given]]:
        if input == 1:
            return as_of.learn(self.spec, state, Version(row.order, row.args)), []
        verdict, made = as_of.step(self.spec, state, row, before)
        return verdict, enriched(made)

    def unkeyed(self, row: Row, input: int, before: int | None) -> tuple[str, list[Given]]:
        if input == 1:
            return "used", []
        verdict, made = as_of.unkeyed(self.spec, row, before)
        return verdict, enriched(made)

    def on_time(self, state: Any, watermark: int | None, clock: int) -> tuple[list[Given], int]:
        made, used = as_of.on_time(self.spec, state, watermark)
        return enriched(made), used

    def due(self, state: Any) -> int | None:
        return as_of.due(self.spec, state)


@dataclass
class CurrentModel:
    spec: current.Spec
    fresh: Callable[[], Any] = field(default=current.State)

    def step(self, state: Any, row: Row, input: int, before: int | None) -> tuple[str, list[Given]]:
        if input == 1:
            return current.learn(self.spec, state, Version(row.order, row.args), before), []
        verdict, made = current.step(self.spec, state, row)
        return verdict, enriched(made)

    def unkeyed(self, row: Row, input: int, before: int | None) -> tuple[str, list[Given]]:
        return "used", [] if input == 1 else enriched([Enriched(row, None)])

    def on_time(self, state: Any, watermark: int | None, clock: int) -> tuple[list[Given], int]:
        made, used = current.on_time(self.spec, state, watermark)
        return enriched(made), used

    def due(self, state: Any) -> int | None:
        return current.due(self.spec, state)


def enriched(rows: list[Enriched]) -> list[Given]:
    return [[ROWS, one.row.time, one.row.order[3], one.row.cause, both(one.row.args, one.values)] for one in rows]


def both(one: tuple[Any, ...] | None, other: tuple[Any, ...] | None) -> list[Any]:
    return [*(one or (None,) * len(TYPES[0])), *(other or (None,) * len(TYPES[1]))]
