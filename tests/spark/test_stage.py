"""Stages on the real engine: pure steps behind Spark's rows, timers, state and restarts say what Python says."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyspark.sql.functions as sf
import pytest

from headrace.base.ids import stable_id
from headrace.spark.session import Spark
from tests.spark.schedules import SECOND, Case, case_of, differs, pace_of, run_python
from tests.spark.staging import END, NONE, Feed, base64, check_counts, column, field, sorting

CASES = 200
BATCHES = 8


@pytest.fixture
def feed(spark: Spark, tmp_path: Path) -> Feed:
    return Feed(spark, tmp_path)


@pytest.mark.timeout(300)  # half a minute on a quiet machine
def test_many_steps_in_one_query_say_what_python_says(feed: Feed) -> None:
    """Rule R3, depth 2: random steps side by side in one stage, a restart in the middle of their schedule."""
    random = Random(11)
    pace = pace_of(random, BATCHES, 100_000 * SECOND)
    cases = [case_of(random, pace, by_clock=False, ranked=0) for _ in range(CASES)]
    for case in cases:  # at the end of input everything closes
        case["batches"].append({"rows": [], "before": pace[-1].watermark, "watermark": END, "clock": 0})
    steps = [_step(number, case) for number, case in enumerate(cases)]
    having = {n: [sf.col("v0") >= case["having"]["least"]] for n, case in enumerate(cases) if case["having"]}
    frame = feed.stage(feed.frame(), steps, having)
    batches = _chain_rows(feed.spark, cases, steps)
    marks = [*(p.watermark for p in pace), END]
    feed.put([], marks[0])
    for number, rows in enumerate(batches):
        feed.put(rows, marks[number + 1] if number < BATCHES else None)
        if number == BATCHES // 2:
            feed.run(frame)
    feed.run(frame)
    spoken = _spoken(feed, cases)
    for number, case in enumerate(cases):
        python = run_python(case)
        for batch in range(len(pace) + 1):
            said = _expected(number, case, batch, python[batch])
            heard = sorted(spoken.get((number, batch), []), key=sorting)
            assert not differs(sorted(said, key=sorting), heard), (
                f"case {number} batch {batch}: {case['spec']}\n{said}\n{heard}"
            )
            check_counts(feed.counts.get(batch + 1, {}).get(str(number), {}), python, batch)


def _windowed(case: Case) -> bool:
    return case["spec"]["step"] not in ("dedup", "changed")


def _step(number: int, case: Case) -> dict[str, Any]:
    windowed = _windowed(case)
    args = [field(f"a{i}", kind) for i, kind in enumerate(case["types"]) if kind is not None]
    named = ("key text", "window_start time", "window_end time", "kind text", "revision int")
    values = [field(f"v{i}", kind) for i, kind in enumerate(case["results"])]
    note = field("note", "string")
    return {
        "ordinal": number,
        "name": f"step-{number}",
        "hold_ms": 0,
        "spec": case["spec"],
        "inputs": [[field("k0", "string"), *args, note] if windowed else [*args, note]],
        "output": [*(field(*name.split()) for name in named), *values] if windowed else [*args, note],
        "keys": 1 if windowed else 0,
        "emits": [1] if windowed else [2],
    }


def _chain_rows(spark: Spark, cases: list[Case], steps: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """All cases' rows as rows of the chain, by batch."""
    groups = []
    for number, case in enumerate(cases):
        types = [t for t in case["types"] if t is not None]
        types = ["string", *types, "string"] if _windowed(case) else [*types, "string"]
        rows = []
        for batch in case["batches"]:
            for row in batch["rows"]:
                args = [v for v, t in zip(row[5], case["types"], strict=True) if t is not None]
                key = [f"case-{number}"] if _windowed(case) else []
                rows.append([*key, *args, f"note {row[3]}"])
        groups.append({"types": types, "rows": rows})
    packed = [iter(payloads) for payloads in json.loads(spark.jvm.Pure.packed(json.dumps(groups)))]
    found: list[list[dict[str, Any]]] = [[] for _ in cases[0]["batches"]]
    for number, case in enumerate(cases):
        for batch, rows in zip(case["batches"], found, strict=True):
            for time, src, part, off, id, _ in batch["rows"]:
                rows.append({
                    "step": number, "key": f"case-{number}", "time": time, "src": src, "part": part, "off": off,
                    "before": NONE if batch["before"] is None else batch["before"], "id": id or None,
                    "payload": next(packed[number]),
                })  # fmt: skip
    return found


def _spoken(feed: Feed, cases: list[Case]) -> dict[tuple[int, int], list[Any]]:
    """What Spark gave, by case and batch of the schedule: [port, time, src, part, off, id, values]."""
    groups: dict[tuple[int, int], dict[str, Any]] = {}
    for _, row in feed.out:
        if row.step < len(cases):
            types = _payload_types(cases[row.step], row.port)
            groups.setdefault((row.step, row.port), {"types": types, "payloads": []})["payloads"].append(
                base64(row.payload)
            )
    values = dict(zip(groups, json.loads(feed.spark.jvm.Pure.unpacked(json.dumps(list(groups.values())))), strict=True))
    seen: Counter[tuple[int, int]] = Counter()
    found: dict[tuple[int, int], list[Any]] = {}
    for number, row in feed.out:
        if row.step < len(cases):
            at = (row.step, row.port)
            told = values[at][seen[at]]
            seen[at] += 1
            id = None if row.id is None else row.id.hex()
            found.setdefault((row.step, number - 1), []).append(
                [row.port, row.time, row.src, row.part, row.off, id, told]
            )
        else:
            step = int(row.key.decode().split("/")[0] == "a")  # dead letters say the app and their place
            assert step
    return found


def _payload_types(case: Case, port: int) -> list[str]:
    if not _windowed(case):
        return [*case["types"], "string"]
    if port == 1:
        return ["string", "timestamp"]
    return ["string", "timestamp", "timestamp", "string", "bigint", *case["results"]]


def _expected(number: int, case: Case, batch: int, said: dict[str, Any]) -> list[Any]:
    found: list[Any] = []
    rows, before = case["batches"][batch]["rows"], case["batches"][batch]["before"]
    for (time, src, part, off, id, args), verdict in zip(rows, said["verdicts"], strict=True):
        place = [time, src, part, off, id or None]
        if verdict == "late":
            found.append([1, *place, [f"note {off}", (before or 0) * 1_000]])
        elif verdict in ("used", "duplicate"):
            found.append([0 if verdict == "used" else 2, *place, [*args, f"note {off}"]])
    for start, end, kind, revision, values, time, cause in said["results"]:
        id = stable_id("a", "1", f"step-{number}", f"case-{number}", cause)
        told = [f"case-{number}", start, end, kind, revision, *values]
        found.append([0, time, 1_000 + number, 0, revision, id, told])
    return found


def test_results_of_one_stage_meet_the_next_in_the_same_batch(feed: Feed) -> None:
    """Rule T6: the second window sums the first one's results, held back by its lateness; other rows pass by."""
    spark = feed.spark
    count = {"name": "n", "kind": "count", "of": "", "scale": 0, "precision": 0, "n": 0, "q": 0.0}
    total = {"name": "s", "kind": "sum", "of": "int", "scale": 0, "precision": 0, "n": 0, "q": 0.0}
    named = (
        "key string",
        "window_start timestamp",
        "window_end timestamp",
        "kind string",
        "revision bigint",
        "v bigint",
    )

    def window(ordinal: int, hold: int, size: int, lateness: int, aggregate: dict[str, Any]) -> dict[str, Any]:
        emit = {"on_change": False, "early": 0}
        spec = {"step": "slices", "size": size * SECOND, "every": size * SECOND, "offset": 0, "by_clock": False,
                "lateness": lateness * SECOND, "emit": emit, "having": False, "aggregates": [aggregate]}  # fmt: skip
        return {
            "ordinal": ordinal, "name": f"w{ordinal}", "hold_ms": hold * 1_000, "spec": spec, "keys": 1,
            "inputs": [[field("k0", "string"), *([field("a0", "bigint")] if aggregate["of"] else [])]],
            "output": [field(*name.split()) for name in named], "emits": [],
        }  # fmt: skip

    first = feed.stage(feed.frame(), [window(1, 0, 10, 20, count)], {})
    made = column(spark, "unpack", sf.col("payload"), "k string, s timestamp, e timestamp, kind string, r long, v long")
    result = (sf.col("step") == 1) & (sf.col("port") == 0)
    everyone = sf.struct(sf.lit("all").alias("k0"), made["v"].alias("a0"))
    onward = {
        "step": sf.when(result, 2).otherwise(sf.col("step")),
        "key": sf.when(result, sf.encode(sf.lit("all"), "utf-8")).otherwise(sf.col("key")),
        "payload": sf.when(result, column(spark, "pack", everyone)).otherwise(sf.col("payload")),
    }
    between = first.select(*(onward.get(name, sf.col(name)).alias(name) for name in first.columns))
    second = feed.stage(between, [window(2, 20, 30, 0, total)], {})

    key = json.loads(spark.jvm.Pure.packed(json.dumps([{"types": ["string"], "rows": [["a"], ["b"]]}])))[0]

    def row(key_: str, at: int, off: int, before: int | None, step: int = 1) -> dict[str, Any]:
        ms = NONE if before is None else before * 1_000
        payload = key[0 if key_ == "a" else 1]
        return {
            "step": step,
            "key": key_,
            "time": at * SECOND,
            "before": ms,
            "src": 0,
            "part": 0,
            "off": off,
            "payload": payload,
        }

    feed.put([row("a", 1, 1, None), row("a", 5, 2, None), row("b", 2, 3, None), row("a", 3, 4, None, 9)], 12_000)
    feed.put([row("a", 11, 5, 12), row("a", 3, 6, 12)], 31_000)  # the window of 3 closes in this very batch
    feed.put([row("a", 2, 7, 31)], 49_999)  # its window is gone: late
    feed.put([row("b", 60, 8, 49)], 50_000)
    feed.put([row("b", 61, 9, 50)], None)
    feed.run(second)
    told = [(batch, r.step, r.key.decode(), r.off) for batch, r in feed.out]
    assert told == [(0, 9, "a", 4), (4, 2, "all", 0)]
    types = ["string", "timestamp", "timestamp", "string", "bigint", "bigint"]
    payloads = [base64(feed.out[1][1].payload)]
    found = json.loads(spark.jvm.Pure.unpacked(json.dumps([{"types": types, "payloads": payloads}])))
    assert found == [
        [["all", 0, 30 * SECOND, "final", 0, 5]]
    ]  # 3 of a and 1 of b in the first ten seconds, 1 of a after
    assert feed.counts[2]["1"]["late"] == 1


def test_a_window_by_the_clock_closes_in_a_later_batch(feed: Feed) -> None:
    """Rule W7: rows count in the window of the batch's clock; a millisecond later it is closed, even without rows."""
    count = {"name": "n", "kind": "count", "of": "", "scale": 0, "precision": 0, "n": 0, "q": 0.0}
    spec = {"step": "slices", "size": 1_000, "every": 1_000, "offset": 0, "lateness": 0, "by_clock": True,
            "emit": {"on_change": False, "early": 0}, "having": False, "aggregates": [count]}  # fmt: skip
    named = (
        "key string",
        "window_start timestamp",
        "window_end timestamp",
        "kind string",
        "revision bigint",
        "n bigint",
    )
    step = {"ordinal": 0, "name": "clocked", "hold_ms": 0, "spec": spec, "inputs": [[field("k0", "string")]], "keys": 1,
            "output": [field(*n.split()) for n in named], "emits": []}  # fmt: skip
    frame = feed.stage(feed.frame(), [step], {}, by_clock=True)
    key = json.loads(feed.spark.jvm.Pure.packed(json.dumps([{"types": ["string"], "rows": [["k"]]}])))[0][0]

    def rows(key_: str, count: int) -> list[dict[str, Any]]:
        one = {"step": 0, "key": key_, "time": 0, "before": NONE, "src": 0, "part": 0, "payload": key}
        return [one | {"off": n} for n in range(count)]

    feed.put(rows("k", 3), 1_000)
    feed.put(rows("other", 2), 2_000)
    feed.put(rows("more", 1), 3_000)
    feed.run(frame)
    assert [(batch, row.key) for batch, row in feed.out] == [(1, b"k"), (2, b"other")]
    types = ["string", "timestamp", "timestamp", "string", "bigint", "bigint"]
    payloads = [base64(row.payload) for _, row in feed.out]
    told = json.loads(feed.spark.jvm.Pure.unpacked(json.dumps([{"types": types, "payloads": payloads}])))[0]
    assert [(kind, n) for _, _, _, kind, _, n in told] == [("final", 3), ("final", 2)]
