"""The Scala steps of tables and views say what the Python steps say: random lives of a key, run by both and compared.

Rows of a view are opaque to its kernels. Here they are texts, and packed rows only where a step packs them itself.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from headrace.model.aggregate import UNRETRACTABLE
from headrace.spark.session import Spark
from headrace.steps import aggregate, changelog, settle, table, view_join
from headrace.steps.change import NO_VERSION, Change
from headrace.steps.changelog import Delta
from headrace.steps.row import END, Row
from headrace.steps.version import Version
from headrace.steps.view_join import Answer, Link
from tests.jvm.agreeing import Case, Given, check, run_python, run_scala
from tests.jvm.joining import ttl_of
from tests.properties import DEPTH
from tests.spark.schedules import SECOND, TAKES, aggregate_of, pace_of, result_type, spark_type, value_of

CASES = 1_000 * DEPTH
CHANGE = ["bigint", "binary", "binary"]  # version, before, after
ROW = ["string", "bigint", "double"]
LINK = ["binary", "bigint", "binary"]  # key, version, values
DELTA = ["boolean", "bigint"]  # enters, version; then the group and the arguments
KEPT = tuple(kind for kind in TAKES if kind not in UNRETRACTABLE)


def test_tables(spark: Spark) -> None:
    """Versions out of order, equal times, tombstones, versions after a deletion, deletions forgotten; rows whose time
    to live is up, some when they come, and that come back."""
    cases = [table_case(Random(seed)) for seed in range(CASES)]
    for case in cases[::10]:
        case["batches"][-1]["watermark"] = END  # the input ends with this batch
    check(spark, cases, TableModel, unpacked)


def test_links_and_right_rows(spark: Spark) -> None:
    """Rows that come, change, move away and come back; both rows changed in a batch; right rows deleted and back."""
    check(spark, [view_case(Random(seed), keys=4, rows=6) for seed in range(CASES)], ViewModel)


def test_links_in_many_chunks(spark: Spark) -> None:
    """So many links that chunks are split, then so few that they are merged again, and in the end none."""
    cases = [view_case(Random(seed), keys=600, rows=250) for seed in range(20 * DEPTH)]
    for case in cases:
        last = case["batches"][-1]
        links = {row[6][0] for batch in case["batches"] for row in batch["rows"] if row[0] == 0}
        gone = [[0, 2**60, 0, 0, 10**6 + n, "", [key, 2**60, None]] for n, key in enumerate(sorted(links))]
        gone.append([1, 2**60, 0, 0, 2 * 10**6, "", [2**60, None, None]])
        case["batches"].append(last | {"rows": gone})
    check(spark, cases, ViewModel)


def test_answers_settle(spark: Spark) -> None:
    """Answers of any causes, several in a batch, in any order; output keys deleted, forgotten and back."""
    check(spark, [settle_case(Random(seed)) for seed in range(CASES)], SettleModel)


def test_groups_over_tables(spark: Spark) -> None:
    """Every aggregate that a table has; rows that enter, leave and change; groups that lose their last row."""
    cases = [group_case(Random(seed)) for seed in range(CASES)]
    assert {a["kind"] for case in cases for a in case["spec"]["aggregates"]} == set(KEPT)
    check(spark, cases, GroupModel, unpacked)


def test_float_sums_are_exact_to_the_last_bit(spark: Spark) -> None:
    """Of values so far apart that rounding on the way, or of more bits than a long has, would show."""
    random = Random(5)
    total = aggregate.Spec(name="total", kind="sum", of="float")
    cases = []
    for _ in range(300 * DEPTH):
        values = [
            2.0**53,
            1.0,
            2.0**-20,
            -(2.0**53),
            5e-324,
            1.7e308,
            random.uniform(-1, 1) * 10 ** random.randint(-300, 300),
        ]
        rows = [[0, n, 0, 0, n, "", [True, n, value]] for n, value in enumerate(random.choices(values, k=4))]
        spec = changelog.Spec(keep=0, aggregates=(total,)).as_json()
        batch = {"rows": rows, "before": None, "watermark": None, "clock": 0}
        made = {"spec": spec, "inputs": [[*DELTA, "double"]], "ports": {0: CHANGE}, "topics": ["t"], "keyed": True}
        cases.append(made | {"batches": [batch], "packed": ["double"]})
    found = unpacked(spark, cases)
    assert [told[0]["given"] for told in found] == [run_python(case, GroupModel)[0]["given"] for case in cases]


def unpacked(spark: Spark, cases: list[Case]) -> list[Any]:
    """What Scala says, with the packed rows of its changes as `case["packed"]` types them."""
    found = run_scala(spark, cases)
    changes = [[given[4] for batch in told for given in batch["given"]] for told in found]
    groups = [
        {
            "types": case["packed"],
            "payloads": [_base64(one) for change in mine for one in change[1:] if one is not None],
        }
        for case, mine in zip(cases, changes, strict=True)
    ]
    for mine, rows in zip(changes, json.loads(spark.jvm.Pure.unpacked(json.dumps(groups))), strict=True):
        each = iter(rows)
        for change in mine:
            change[1:] = [None if one is None else next(each) for one in change[1:]]
    return found


def _base64(hexadecimal: str) -> str:
    return base64.b64encode(bytes.fromhex(hexadecimal)).decode()


Made = list[tuple[int, int, list[Any] | None]]  # input, version, columns


def case_of(
    random: Random, spec: Any, inputs: list[list[str]], port: list[str], make: Callable[[int], Made], packed: list[str]
) -> Case:
    """`make`: the rows of a batch about this time; the time of a row is its version."""
    offset, batches = 0, []
    for at in pace_of(random, random.randint(1, 7), 1_000 * SECOND):
        rows = []
        for input, version, columns in make(at.top):
            offset += 1
            rows.append([input, version, 0, random.randint(0, 1), offset, "", columns])
        batches.append({"rows": rows, "before": at.before, "watermark": at.watermark, "clock": at.clock})
    return {"spec": spec.as_json(), "inputs": inputs, "ports": {0: port}, "topics": ["t"], "keyed": True,
            "batches": batches, "packed": packed}  # fmt: skip


def about(random: Random, top: int) -> int:
    return top + random.choice((0, 0, 1, random.randint(-30, 5) * SECOND))


def keep_of(random: Random) -> int:
    return random.choice((0, 1, 5, 60, 10_000)) * SECOND


def table_case(random: Random) -> Case:
    def row() -> list[Any] | None:
        if random.random() < 0.3:
            return None
        return [
            random.choice((None, "", "a", "longer than eight bytes")),
            random.randint(0, 1),
            random.choice((None, 1.5)),
        ]

    def make(top: int) -> Made:
        return [(0, about(random, top), row()) for _ in range(random.randint(0, 4))]

    return case_of(random, table.Spec(keep=keep_of(random), ttl=ttl_of(random)), [ROW], CHANGE, make, ROW)


def view_case(random: Random, keys: int, rows: int) -> Case:
    """Late in its life a foreign key loses more links than it gains."""
    left = (f"order-{n}".encode().hex() for n in range(keys))
    names, calls = list(left), iter(range(100))

    def make(top: int) -> Made:
        gone = (0.2, 0.2, 0.5, 0.9)[next(calls) % 4]
        made: Made = []
        for _ in range(random.randint(rows // 2, rows)):
            values = None if random.random() < gone else f"{random.randint(0, 3):02}"
            made.append((0, about(random, top), [random.choice(names), about(random, top), values]))
        for _ in range(random.choice((0, 0, 1, 2))):
            after = random.choice((None, "aa", "bb"))
            made.append((1, about(random, top), [about(random, top), None, after]))
        return made

    return case_of(
        random, view_join.Spec(outer=True, width=1), [LINK, CHANGE], [*["bigint"] * 2, *["binary"] * 2], make, []
    )


def settle_case(random: Random) -> Case:
    def make(top: int) -> Made:
        made: Made = []
        for _ in range(random.randint(0, 4)):
            left, right = about(random, top), random.choice((NO_VERSION, about(random, top)))
            made.append((0, max(left, right), [left, right, random.choice((None, None, "aa", "bb"))]))
        return made

    return case_of(random, settle.Spec(keep=keep_of(random)), [["bigint", "bigint", "binary"]], CHANGE, make, [])


def group_case(random: Random) -> Case:
    """The deltas of a table that is there: a row leaves with the arguments it entered with."""
    aggregates = tuple(aggregate_of(random, "", n, KEPT) for n in range(random.randint(1, 4)))
    group, types = random.choice((([], []), (["DE"], ["string"]), ([None, 7], ["string", "bigint"])))
    takes = [a for a in aggregates if a.of]
    inside: dict[int, list[Any]] = {}

    def make(top: int) -> Made:
        made: Made = []
        for name in random.sample(range(8), random.choice((0, 1, 3, 8))):
            version = about(random, top)
            if name in inside:
                made.append((0, version, [False, version, *group, *inside.pop(name)]))
            if random.random() < 0.5:
                inside[name] = [value_of(random, a.of, a.scale) for a in takes]
                made.append((0, version, [True, version, *group, *inside[name]]))
        return made

    spec = changelog.Spec(keep=keep_of(random), aggregates=aggregates)
    arguments = [spark_type(a.as_json()) for a in takes]
    packed = [*types, *(result_type(a.as_json()) for a in aggregates)]
    return case_of(random, spec, [[*DELTA, *types, *arguments]], CHANGE, make, packed)


def told(changes: list[Change], group: tuple[Any, ...] = ()) -> list[Given]:
    found: list[Given] = []
    for change in changes:
        rows = [None if row is None else [*group, *row] for row in (change.before, change.after)]
        found.append([0, change.version, 0, str(change.version), [change.version, *rows]])
    return found


@dataclass
class TableModel:
    case: Case

    def __post_init__(self) -> None:
        self.spec = table.Spec(keep=self.case["spec"]["keep"], ttl=self.case["spec"]["ttl"])

    def fresh(self) -> table.State:
        return table.State()

    def step(self, state: table.State, row: Row, input: int, before: int | None) -> tuple[str, list[Given]]:
        return table.step(self.spec, state, Version(row.order, row.args)), []

    def unkeyed(self, row: Row, input: int, before: int | None) -> tuple[str, list[Given]]:
        raise AssertionError("every row has a key")

    def on_time(self, state: table.State, watermark: int | None, clock: int) -> tuple[list[Given], int]:
        changes, used = table.on_time(self.spec, state, watermark)
        return told(changes), used

    def due(self, state: table.State) -> int | None:
        return table.due(self.spec, state)


@dataclass
class ViewModel:
    case: Case

    def __post_init__(self) -> None:
        self.spec = view_join.Spec(outer=True, width=1)

    def fresh(self) -> view_join.State:
        return view_join.State()

    def step(self, state: view_join.State, row: Row, input: int, before: int | None) -> tuple[str, list[Given]]:
        if input == 0:
            key, version, values = row.args
            verdict, answers = view_join.step(self.spec, state, Link(_text(key), version, _one(values)))
        else:
            version, _, after = row.args
            verdict, answers = view_join.learn(self.spec, state, Change("", None, _one(after), version))
        return verdict, [
            [0, max(one.cause), row.order[3], row.cause, [*one.cause, *(one.values or ())], one.key] for one in answers
        ]

    def unkeyed(self, row: Row, input: int, before: int | None) -> tuple[str, list[Given]]:
        raise AssertionError("every row has a key")

    def on_time(self, state: view_join.State, watermark: int | None, clock: int) -> tuple[list[Given], int]:
        _, used = view_join.on_time(self.spec, state, watermark)
        return [], used

    def due(self, state: view_join.State) -> int | None:
        return view_join.due(self.spec, state)


@dataclass
class SettleModel:
    case: Case

    def __post_init__(self) -> None:
        self.spec = settle.Spec(keep=self.case["spec"]["keep"])

    def fresh(self) -> settle.State:
        return settle.State()

    def step(self, state: settle.State, row: Row, input: int, before: int | None) -> tuple[str, list[Given]]:
        left, right, values = row.args
        return settle.step(self.spec, state, Answer("", (left, right), _one(values))), []

    def unkeyed(self, row: Row, input: int, before: int | None) -> tuple[str, list[Given]]:
        raise AssertionError("every row has a key")

    def on_time(self, state: settle.State, watermark: int | None, clock: int) -> tuple[list[Given], int]:
        changes, used = settle.on_time(self.spec, state, watermark)
        opaque = told(changes)
        for given in opaque:
            given[4][1:] = [None if row is None else row[0] for row in given[4][1:]]
        return opaque, used

    def due(self, state: settle.State) -> int | None:
        return settle.due(self.spec, state)


@dataclass
class GroupModel:
    case: Case

    def __post_init__(self) -> None:
        spec = self.case["spec"]
        aggregates = tuple(aggregate.Spec(**a) for a in spec["aggregates"])
        self.spec = changelog.Spec(keep=spec["keep"], aggregates=aggregates)
        self.group: tuple[Any, ...] = ()

    def fresh(self) -> changelog.State:
        return changelog.State()

    def step(self, state: changelog.State, row: Row, input: int, before: int | None) -> tuple[str, list[Given]]:
        enters, version, *rest = row.args
        columns = len(self.case["packed"]) - len(self.spec.aggregates)
        self.group, arguments = tuple(rest[:columns]), iter(rest[columns:])
        args = tuple(next(arguments) if a.of else None for a in self.spec.aggregates)
        return changelog.step(self.spec, state, Delta(enters, args, version)), []

    def unkeyed(self, row: Row, input: int, before: int | None) -> tuple[str, list[Given]]:
        raise AssertionError("every row has a key")

    def on_time(self, state: changelog.State, watermark: int | None, clock: int) -> tuple[list[Given], int]:
        changes, used = changelog.on_time(self.spec, state, watermark)
        return told(changes, self.group), used

    def due(self, state: changelog.State) -> int | None:
        return changelog.due(self.spec, state)


def _one(value: str | None) -> tuple[Any, ...] | None:
    return None if value is None else (value,)


def _text(hexadecimal: str) -> str:
    return bytes.fromhex(hexadecimal).decode()
