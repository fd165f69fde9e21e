"""Patterns in a stage on the real engine say what Python says: many side by side in one query, over a restart."""

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
from tests.jvm.agreeing import Case, run_python
from tests.jvm.patterning import LAYOUT, REFUSALS, TOPICS, beats_of, case_of, model_of, pattern_for
from tests.properties import DEPTH
from tests.spark.schedules import differs
from tests.spark.staging import NONE, Feed, base64, check_counts, field

CASES = 100 * DEPTH
BATCHES = 6
DEAD, DERIVED = 2_000_000, 1_000
LETTER = ["string", "binary", "string", "binary", "array<struct<key:string,value:binary>>"]


@pytest.mark.timeout(300)  # half a minute on a quiet machine
def test_many_patterns_in_one_query_say_what_python_says(spark: Spark, tmp_path: Path) -> None:
    """Rule R3, depth 2: matches, timeouts, conditions bound by Spark, stable ids, dead letters, the counts of D3."""
    random, feed = Random(3), Feed(spark, tmp_path)
    beats = beats_of(random, BATCHES, 100_000)
    cases = [case_of(seed, beats) for seed in range(CASES)]
    marks = [batch["watermark"] for batch in cases[0]["batches"]]
    conditions = {number: _conditions(case) for number, case in enumerate(cases)}
    frame = feed.stage(feed.frame(), [_step(n, case) for n, case in enumerate(cases)], conditions, topics=TOPICS)
    feed.put([], marks[0])
    for number, rows in enumerate(_chain_rows(spark, cases)):
        feed.put(rows, marks[number + 1] if number < BATCHES else None)
        if number == BATCHES // 2:
            feed.run(frame)
    feed.run(frame)
    spoken, letters, wanted = _spoken(feed, cases), _letters(feed), Counter[tuple[int, str, str]]()
    for number, case in enumerate(cases):
        python = run_python(case, model_of)
        for batch, said in enumerate(python):
            expected, heard = _expected(number, said), spoken.get((number, batch), [])
            assert not differs(expected, heard), f"case {number} batch {batch}: {case['spec']}\n{expected}\n{heard}"
            check_counts(feed.counts.get(batch + 1, {}).get(str(number), {}), python, batch)
            wanted.update((batch, place, why) for place, why in _buried(case, batch, said))
    assert letters == wanted
    assert {why for _, _, why in letters} == {"nan", "refused"}


def _step(number: int, case: Case) -> dict[str, Any]:
    types = case["ports"][0]
    return {
        "ordinal": number,
        "name": f"step-{number}",
        "hold_ms": 0,
        "spec": case["spec"],
        "inputs": [_fields("c", LAYOUT)] * 2,
        "ports": {0: _fields("c", types), 4: _fields("c", types)},
        "emits": [0, 4],
        "asked": [_fields("s", asked.types) for asked in pattern_for(case["seed"])[2]],
    }


def _fields(letter: str, types: Any) -> list[dict[str, Any]]:
    return [field(f"{letter}{n}", kind) for n, kind in enumerate(types)]


def _conditions(case: Case) -> list[Any]:
    """As the harness reads them, in Spark's own words."""
    column = lambda at: sf.col(f"c{at}" if at < len(LAYOUT) else f"s{at - len(LAYOUT)}")  # noqa: E731
    return [
        column(left) < column(right) if how == "<" else column(left) == column(right)
        for left, how, right, _ in case["conditions"]
    ]


def _chain_rows(spark: Spark, cases: list[Case]) -> list[list[dict[str, Any]]]:
    """All cases' rows as rows of the chain, by batch."""
    values = [row[6] for case in cases for batch in case["batches"] for row in batch["rows"]]
    payloads = iter(json.loads(spark.jvm.Pure.packed(json.dumps([{"types": LAYOUT, "rows": values}])))[0])
    found: list[list[dict[str, Any]]] = [[] for _ in cases[0]["batches"]]
    for number, case in enumerate(cases):
        for batch, rows in zip(case["batches"], found, strict=True):
            for input, time, src, part, off, id, _ in batch["rows"]:
                rows.append({
                    "step": number, "port": input, "key": f"case-{number}", "time": time, "src": src, "part": part,
                    "before": NONE if batch["before"] is None else batch["before"], "off": off, "id": id or None,
                    "payload": next(payloads),
                })  # fmt: skip
    return found


def _spoken(feed: Feed, cases: list[Case]) -> dict[tuple[int, int], list[Any]]:
    """What Spark gave, by case and batch of the schedule: [port, time, src, part, off, id, values]."""
    rows = [(batch, row) for batch, row in feed.out if row.step != DEAD]
    groups = [{"types": cases[row.step]["ports"][0], "payloads": [base64(row.payload)]} for _, row in rows]
    values = json.loads(feed.spark.jvm.Pure.unpacked(json.dumps(groups)))
    found: dict[tuple[int, int], list[Any]] = {}
    for (batch, row), (told,) in zip(rows, values, strict=True):
        assert row.key == f"case-{row.step}".encode()
        made = [row.port, row.time, row.src, row.part, row.off, row.id.hex(), told]
        found.setdefault((row.step, batch - 1), []).append(made)
    return found


def _expected(number: int, said: dict[str, Any]) -> list[Any]:
    return [
        [port, time, DERIVED + number, 0, 0, stable_id("a", "1", f"step-{number}", f"case-{number}", cause), values]
        for port, time, _, cause, values in said["given"]
        if port != REFUSALS
    ]


def _letters(feed: Feed) -> Counter[tuple[int, str, str]]:
    """Dead letters by batch: the row's place and why."""
    rows = [(batch, row) for batch, row in feed.out if row.step == DEAD]
    groups = [{"types": LETTER, "payloads": [base64(row.payload) for _, row in rows]}]
    told = json.loads(feed.spark.jvm.Pure.unpacked(json.dumps(groups)))[0]
    return Counter(
        (batch - 1, row.key.decode(), letter[2].split(":")[0]) for (batch, row), letter in zip(rows, told, strict=True)
    )


def _buried(case: Case, batch: int, said: dict[str, Any]) -> list[tuple[str, str]]:
    """Rows that are no numbers, and rows that would have opened too much, which may have come in an earlier batch."""
    place = lambda src, part, off: f"a/{TOPICS[src]}/{part}/{off}"  # noqa: E731
    judged = zip(case["batches"][batch]["rows"], said["verdicts"], strict=True)
    found = [(place(*row[2:5]), "nan") for row, verdict in judged if verdict == "nan"]
    rows = [row for earlier in case["batches"] for row in earlier["rows"]]
    places = {row[5] or "/".join(map(str, (TOPICS[row[2]], *row[3:5]))): place(*row[2:5]) for row in rows}
    return found + [(places[cause], "refused") for port, _, _, cause, _ in said["given"] if port == REFUSALS]
