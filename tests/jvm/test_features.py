"""The Scala features say what the Python features say: random lives of a key, run by both and compared exactly."""

from __future__ import annotations

import json
from dataclasses import dataclass
from random import Random
from typing import Any

from headrace.model.tiles import NEED_ROWS
from headrace.spark.session import Spark
from headrace.steps import aggregate, features
from headrace.steps.row import Row
from tests.jvm.agreeing import Case, Given, check, run_python
from tests.properties import DEPTH
from tests.spark.schedules import SECOND, TAKES, TOPICS, aggregate_of, pace_of, result_type, spark_type, value_of

ROWS = 0
CASES = 600 * DEPTH


def case_of(random: Random, rows: int = 8) -> Case:
    """Windows of all aggregates over rows of one input or several; in its layout every argument has a column, somewhere
    between others. Some are told once by an id, some say what they have seen."""
    inputs = random.choice((1, 1, 2, 3))
    columns = [[aggregate.Spec(name="", kind="", of="text")] for _ in range(inputs)]
    windows = []
    for _ in range(random.randint(0, 3)):
        input, tile = random.randrange(inputs), random.choice((0, 0, 1, 3)) * SECOND
        kinds = [kind for kind in TAKES if not (tile and kind in NEED_ROWS)]
        aggregates = [
            aggregate_of(random, random.choice(("", "", "count")), n, kinds) for n in range(random.randint(1, 3))
        ]
        windows.append(
            features.Window(
                size=random.choice((12, 15)) * tile or random.choice((1, 10, 45)) * SECOND,
                delay=0 if tile else random.choice((0, 0, 5, 20)) * SECOND,
                aggregates=tuple(aggregates),
                places=tuple(-1 if not one.of else _placed(random, columns[input], one) for one in aggregates),
                input=input,
                tile=tile,
            )
        )
    tiled = [window for window in windows if window.tile]
    asked = len(columns[0])
    last = [(place, random.choice((1, 2, 5))) for place in range(random.randint(0 if windows else 1, asked))]
    once = random.choice(("", "", "int", "text", "float"))
    if once:
        columns[0].append(aggregate.Spec(name="", kind="", of=once))
    kept = [random.sample(range(len(some)), len(some)) for some in columns]  # where in the layout each column stands
    spec = features.Spec(
        windows=tuple(windows),
        last=tuple(last),
        ttl=max([random.choice((3, 30, 300)) * SECOND, *(window.size for window in tiled if window.input == 0)]),
        lateness=random.choice((0, 0, 5, 30)) * SECOND,
        most=random.choice((5, 100_000)),
        kept=tuple(map(tuple, kept)),
        once=once,
        seen=random.random() < 0.3,
    )
    pace = pace_of(random, random.randint(1, 7), random.choice((-2, 1_000)) * SECOND)
    offsets = iter(range(100_000))
    batches = []
    for at in pace:
        made = []
        for _ in range(random.choice((0, 1, 2, 3, rows))):
            input = random.choice((0, random.randrange(inputs)))
            time = at.top + random.choice((0, random.randint(-40, 5) * SECOND, random.randint(-4_000, 4_000)))
            values: list[Any] = [None] * len(columns[input])
            for column, place in zip(columns[input], kept[input], strict=True):
                values[place] = value_of(random, column.of, column.scale)
            if once and input == 0:
                values[kept[0][-1]] = {"int": int, "text": str, "float": float}[once](random.randint(1, 9))
            made.append([input, time, random.randint(0, 1), random.randint(0, 2), next(offsets), "", values])
        batches.append({"rows": made, "before": at.before, "watermark": at.watermark, "clock": at.clock})
    layouts = [[""] * len(some) for some in columns]
    for layout, some, places in zip(layouts, columns, kept, strict=True):
        for column, place in zip(some, places, strict=True):
            layout[place] = spark_type(column.as_json())
    told = [result_type(one.as_json()) for window in spec.windows for one in window.aggregates]
    types = [layouts[0][kept[0][place]] for place, _ in last]
    told += [f"array<{type}>" if n > 1 else type for type, (_, n) in zip(types, last, strict=True)]
    ports = {ROWS: [*layouts[0], *told, *(["string"] if spec.seen else [])]}
    return {
        "spec": spec.as_json() | {"once_of": once}, "inputs": layouts, "ports": ports, "topics": TOPICS, "keyed": True,
        "batches": batches,
    }  # fmt: skip


def _placed(random: Random, columns: list[aggregate.Spec], one: aggregate.Spec) -> int:
    """The argument's column: one of its kind that is there, or another."""
    same = [at for at, known in enumerate(columns) if (known.of, known.scale) == (one.of, one.scale)]
    if same and random.random() < 0.5:
        return random.choice(same)
    columns.append(one)
    return len(columns) - 1


def model_of(case: Case) -> Model:
    spec = {name: value for name, value in case["spec"].items() if name not in ("step", "once_of")}
    windows = tuple(
        features.Window(**window | {"aggregates": tuple(aggregate.Spec(**one) for one in window["aggregates"])})
        for window in spec["windows"]
    )
    spec |= {"windows": windows, "once": case["spec"]["once_of"], "topics": tuple(case["topics"])}
    return Model(features.Spec(**spec), case["inputs"])


@dataclass
class Model:
    """The Python step in the words of RowStep.scala."""

    spec: features.Spec
    layouts: list[list[str]]

    def fresh(self) -> features.State:
        return features.fresh(self.spec)

    def turn(self, input: int) -> int:
        return features.turn(input)

    def step(self, state: Any, row: Row, input: int, before: int | None) -> tuple[str, list[Given]]:
        layout = self.layouts[input]
        plain = tuple(_plain(layout[at], row.args[at]) for at in self.spec.kept[input])
        verdict, told = features.step(self.spec, state, row._replace(args=plain), before, input)
        values = [*row.args, *map(_shown, told)]
        given = [[ROWS, row.time, row.order[3], row.cause, values]]
        return verdict, given if verdict == "used" and input == 0 else []

    def unkeyed(self, row: Row, input: int, before: int | None) -> tuple[str, list[Given]]:
        raise AssertionError("features have a key")

    def on_time(self, state: Any, watermark: int | None, clock: int) -> tuple[list[Given], int]:
        features.on_time(self.spec, state, watermark)
        return [], 0

    def due(self, state: Any) -> int | None:
        return features.due(self.spec, state)


def _plain(type: str, value: Any) -> Any:
    return bytes.fromhex(value) if type == "binary" and value is not None else value


def _shown(value: Any) -> Any:
    if isinstance(value, list):
        return [_shown(one) for one in value]
    return value.hex() if isinstance(value, bytes) else value


def test_features(spark: Spark) -> None:
    """All aggregates, delays, tiles, several inputs, rows out of order and of equal times, late ones, repeated ones,
    silences, keys that are full."""
    cases = [case_of(Random(seed)) for seed in range(CASES)]
    verdicts = {one for case in cases for batch in run_python(case, model_of) for one in batch["verdicts"]}
    assert verdicts == {"used", "late", "nan", "too-many", "duplicate"}
    check(spark, cases, model_of)


def test_features_of_busy_keys(spark: Spark) -> None:
    """Where windows slide on from row to row."""
    check(spark, [case_of(Random(seed), rows=60) for seed in range(40 * DEPTH)], model_of)


def test_windows_slide_on_over_rows_that_a_full_key_drops(spark: Spark) -> None:
    total = aggregate.Spec(name="v", kind="sum", of="int")
    window = features.Window(size=10 * SECOND, delay=0, aggregates=(total,), places=(0,))
    spec = features.Spec(windows=(window,), last=(), ttl=300 * SECOND, lateness=0, most=3, kept=((0,),))
    row = lambda ms, value: [0, ms * 1_000, 0, 0, ms, "", [value]]  # noqa: E731
    batches = [
        {"rows": [row(0, 1), row(9_000, 2)], "before": None, "watermark": 0, "clock": 0},
        {"rows": [], "before": 0, "watermark": 12_000, "clock": 0},
        {"rows": [row(12_100, 4), row(19_050, 8)], "before": 12_000, "watermark": 12_000, "clock": 0},
    ]
    case = {
        "spec": spec.as_json() | {"once_of": ""}, "inputs": [["bigint"]], "ports": {ROWS: ["bigint", "bigint"]},
        "topics": TOPICS, "keyed": True, "batches": batches,
    }  # fmt: skip
    told = run_python(case, model_of)
    assert [values for batch in told for *_, values in batch["given"]] == [[1, 1], [2, 3], [4, 6], [8, 12]]
    check(spark, [case], model_of)


def hot_key(tiles: bool) -> Case:
    """A terminal with 10,000 payments a day: sum, count and mean over an hour and a day."""
    values = [("sum", "int"), ("count", ""), ("avg", "int")]
    windows = tuple(
        features.Window(
            size=hours * 3_600 * SECOND, delay=0, places=(0, -1, 0), tile=tile * SECOND * tiles,
            aggregates=tuple(aggregate.Spec(name="v", kind=kind, of=of) for kind, of in values),
        )
        for hours, tile in ((1, 300), (24, 3_600))
    )  # fmt: skip
    day = 24 * 3_600 * SECOND
    spec = features.Spec(windows=windows, last=(), ttl=day, lateness=60 * SECOND, most=100_000, kept=((0,),))
    times = [number * day // 10_000 for number in range(10_000)]
    batches: list[Any] = []
    for at in range(0, 10_000, 50):
        rows = [[0, time, 0, 0, at + n, "", [time % 997]] for n, time in enumerate(times[at : at + 50])]
        before = batches[-1]["watermark"] if batches else None
        batches.append({"rows": rows, "before": before, "watermark": rows[-1][1] // 1_000, "clock": 0})
    return {
        "spec": spec.as_json() | {"once_of": ""}, "inputs": [["bigint"]],
        "ports": {ROWS: ["bigint", *["bigint", "bigint", "double"] * 2]}, "topics": TOPICS, "keyed": True,
        "batches": batches,
    }  # fmt: skip


def test_fe12_a_hot_key_in_tiles_stays_small(spark: Spark) -> None:
    tiled, exact = (spark.jvm.PureRows.bytes(json.dumps(hot_key(tiles))) for tiles in (True, False))
    assert tiled < 1_000 < 50_000 < exact
    check(spark, [hot_key(True)], model_of)
