"""Joins in a stage on the real engine say what Python says: many side by side in one query, over a restart."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from headrace.base.ids import stable_id
from headrace.spark.session import Spark
from tests.jvm.agreeing import Case, run_python
from tests.jvm.joining import (
    DERIVED,
    LATE,
    SIDES,
    TOPICS,
    TYPES,
    as_of_spec,
    both,
    case_of,
    current_spec,
    interval_spec,
    model_of,
)
from tests.properties import DEPTH
from tests.spark.schedules import SECOND, Pace, differs, pace_of
from tests.spark.staging import END, NONE, Feed, base64, check_counts, field

CASES = 150 * DEPTH
BATCHES = 8


@pytest.mark.timeout(300)  # half a minute on a quiet machine
def test_many_joins_in_one_query_say_what_python_says(spark: Spark, tmp_path: Path) -> None:
    """Rule R3, depth 2: rows, late rows, stable ids, tombstones, rows without key, holds, and the counts of rule D3."""
    random, feed = Random(5), Feed(spark, tmp_path)
    pace = pace_of(random, BATCHES, 100_000 * SECOND)
    cases, holds = [], []
    for number in range(CASES):
        spec_of = (interval_spec, as_of_spec, current_spec)[number % 3]
        holds.append(random.choice((0, 0, 5_000)))
        case = case_of(random, spec_of, [_held(at, holds[-1]) for at in pace])
        end = {"rows": [], "before": _less(pace[-1].watermark, holds[-1]), "watermark": END - holds[-1], "clock": 0}
        cases.append(case | {"batches": [*case["batches"], end]})
    steps = [_step(number, case, holds[number]) for number, case in enumerate(cases)]
    frame = feed.stage(feed.frame(), steps, {}, topics=TOPICS)
    marks = [*(at.watermark for at in pace), END]
    feed.put([], marks[0])
    for number, rows in enumerate(_chain_rows(spark, cases, holds)):
        feed.put(rows, marks[number + 1] if number < BATCHES else None)
        if number == BATCHES // 2:
            feed.run(frame)
    feed.run(frame)
    spoken = _spoken(feed, cases)
    for number, case in enumerate(cases):
        python = run_python(case, model_of)
        for batch, said in enumerate(python):
            expected = sorted(_expected(number, case, batch, said), key=_late_first)
            heard = sorted(spoken.get((number, batch), []), key=_late_first)
            assert not differs(expected, heard), f"case {number} batch {batch}: {case['spec']}\n{expected}\n{heard}"
            check_counts(feed.counts.get(batch + 1, {}).get(str(number), {}), python, batch)
        if case["spec"]["step"] == "interval_join":  # the end of input leaves nothing in state
            assert sum(steps.get(str(number), {}).get("keys", 0) for steps in feed.counts.values()) == 0


def _late_first(told: list[Any]) -> tuple[bool, str]:
    """Late rows in any order; what a key gave in its own (rule D4)."""
    return told[0] != LATE, json.dumps(told) if told[0] == LATE else ""


def _held(at: Pace, hold: int) -> Pace:
    """The pace that a step meets: the watermark less its hold."""
    return Pace(at.top, _less(at.before, hold), _less(at.watermark, hold), at.clock)


def _less(watermark: int | None, hold: int) -> int | None:
    return None if watermark is None else watermark - hold


def _step(number: int, case: Case, hold: int) -> dict[str, Any]:
    def fields(types: Any) -> list[dict[str, Any]]:
        return [field(f"c{n}", kind) for n, kind in enumerate(types)]

    return {
        "ordinal": number,
        "name": f"step-{number}",
        "hold_ms": hold,
        "spec": case["spec"],
        "inputs": [fields(types) for types in case["inputs"]],
        "ports": {port: fields(types) for port, types in case["ports"].items()},
        "emits": list(case["ports"]),
    }


def _chain_rows(spark: Spark, cases: list[Case], holds: list[int]) -> list[list[dict[str, Any]]]:
    """All cases' rows as rows of the chain, by batch."""
    groups: list[dict[str, Any]] = [{"types": types, "rows": []} for types in TYPES]
    found: list[list[dict[str, Any]]] = [[] for _ in cases[0]["batches"]]
    packed = []
    for number, case in enumerate(cases):
        for batch, rows in zip(case["batches"], found, strict=True):
            for input, time, src, part, off, id, values in batch["rows"]:
                before = NONE if batch["before"] is None else batch["before"] + holds[number]
                rows.append({
                    "step": number, "port": input, "key": f"case-{number}" if case["keyed"] else None, "time": time,
                    "before": before, "src": src, "part": part, "off": off, "id": id or None, "payload": None,
                })  # fmt: skip
                if values is not None:
                    packed.append((rows[-1], input, len(groups[input]["rows"])))
                    groups[input]["rows"].append(values)
    payloads = json.loads(spark.jvm.Pure.packed(json.dumps(groups)))
    for row, input, place in packed:
        row["payload"] = payloads[input][place]
    return found


def _spoken(feed: Feed, cases: list[Case]) -> dict[tuple[int, int], list[Any]]:
    """What Spark gave, by case and batch of the schedule: [port, time, src, part, off, id, values]."""
    ports = sorted({row.port for _, row in feed.out})
    types = cases[0]["ports"]
    groups = [
        {"types": types[port], "payloads": [base64(row.payload) for _, row in feed.out if row.port == port]}
        for port in ports
    ]
    values = dict(zip(ports, map(iter, json.loads(feed.spark.jvm.Pure.unpacked(json.dumps(groups)))), strict=True))
    found: dict[tuple[int, int], list[Any]] = {}
    for batch, row in feed.out:
        assert row.key == (f"case-{row.step}".encode() if cases[row.step]["keyed"] else None)
        id = None if row.id is None else row.id.hex()
        found.setdefault((row.step, batch - 1), []).append(
            [row.port, row.time, row.src, row.part, row.off, id, next(values[row.port])]
        )
    return found


def _expected(number: int, case: Case, batch: int, said: dict[str, Any]) -> list[Any]:
    found: list[Any] = []
    rows, before = case["batches"][batch]["rows"], case["batches"][batch]["before"]
    for (input, time, src, part, off, id, values), verdict in zip(rows, said["verdicts"], strict=True):
        if verdict == "late":
            columns = both(values, None) if input == 0 else both(None, values)
            found.append([LATE, time, src, part, off, id or None, [*columns, SIDES[input], max(before, 0) * 1_000]])
    places = {
        id or f"{TOPICS[src]}/{part}/{off}": [src, part, off, id or None]
        for earlier in case["batches"]
        for _, _, src, part, off, id, _ in earlier["rows"]
    }
    key = f"case-{number}" if case["keyed"] else ""
    for port, time, _, cause, values in said["given"]:
        made = [DERIVED + number, 0, 0, stable_id("a", "1", f"step-{number}", key, cause)]
        place = made if case["spec"]["step"] == "interval_join" else places[cause]
        found.append([port, time, *place, values])
    return found
