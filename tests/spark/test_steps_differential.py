"""The Scala steps say what the Python steps say: thousands of random schedules, run by both, compared exactly.

A case is one key's life: a random step over random aggregates, batches of rows out of order, watermarks that move.
Python takes rows in order R2; Scala takes them as they came and sorts only where the step says it must.
"""

from __future__ import annotations

import json
from random import Random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.spark.session import Spark
from tests.spark.schedules import Case, case_of, differs, run_python

CASES = 3_000


def test_the_scala_steps_say_what_the_python_steps_say(spark: Spark) -> None:
    """Rule R3, depth 1. A failure names its seed and shows the smallest schedule that still fails."""
    cases = [case_of(Random(seed)) for seed in range(CASES)]
    found = run_scala(spark, cases)
    for seed, (case, scala) in enumerate(zip(cases, found, strict=True)):
        if differs(run_python(case), scala):
            small = smallest(spark, case)
            raise AssertionError(f"seed {seed}: {explain(small, run_python(small), run_scala(spark, [small])[0])}")


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(random=st.randoms(use_true_random=False))
def test_they_agree_on_whatever_hypothesis_thinks_of(spark: Spark, random: Random) -> None:
    case = case_of(random)
    python, scala = run_python(case), run_scala(spark, [case])[0]
    assert not differs(python, scala), explain(case, python, scala)


def test_sketches_agree_when_they_are_large(spark: Spark) -> None:
    """More different values than are kept exactly, and more powers of ten than a sketch has buckets for."""
    random = Random(7)
    aggregates = [
        {"name": "d", "kind": "distinct", "of": "text", "scale": 0, "precision": 0, "n": 0, "q": 0.0},
        {"name": "a", "kind": "distinct_approx", "of": "int", "scale": 0, "precision": 0, "n": 0, "q": 0.0},
        {"name": "q", "kind": "quantile", "of": "float", "scale": 0, "precision": 0, "n": 0, "q": 0.7},
    ]
    emit = {"on_change": True, "early": 0}
    spec = {"step": "slices", "size": 300, "every": 100, "offset": 0, "lateness": 0, "by_clock": False, "emit": emit,
            "having": False, "aggregates": aggregates}  # fmt: skip
    batches = []
    for batch in range(4):
        rows = []
        for offset in range(1_500):
            args = [f"t{random.randint(0, 2_000)}", random.randint(0, 10**6), 10.0 ** random.uniform(-11, 40)]
            rows.append([random.randint(0, 300), 0, 0, batch * 1_500 + offset, "", args])
        batches.append({"rows": rows, "before": None, "watermark": None, "clock": batch})
    case = {"spec": spec, "types": ["string", "bigint", "double"], "results": ["bigint", "bigint", "double"],
            "topics": ["t"], "having": None, "batches": batches}  # fmt: skip
    python, scala = run_python(case), run_scala(spark, [case])[0]
    assert any(result[4][0] > 1_000 for batch in python for result in batch["results"])
    assert not differs(python, scala)


def run_scala(spark: Spark, cases: list[Case]) -> list[Any]:
    found: list[Any] = json.loads(spark.jvm.Pure.run(json.dumps(cases)))
    return found


def smallest(spark: Spark, case: Case) -> Case:
    """Leaves out batches and rows as long as the engines still differ."""
    for smaller in _smaller(case):
        if differs(run_python(smaller), run_scala(spark, [smaller])[0]):
            return smallest(spark, smaller)
    return case


def _smaller(case: Case) -> list[Case]:
    batches = case["batches"]
    fewer = [batches[:i] + batches[i + 1 :] for i in range(len(batches))]
    for i, batch in enumerate(batches):
        for j in range(len(batch["rows"])):
            rows = batch["rows"][:j] + batch["rows"][j + 1 :]
            fewer.append([*batches[:i], batch | {"rows": rows}, *batches[i + 1 :]])
    return [case | {"batches": b} for b in fewer if b]


def explain(case: Case, python: Any, scala: Any) -> str:
    lines = [f"{case['spec']} having {case['having']}"]
    for batch, said, heard in zip(case["batches"], python, scala, strict=True):
        lines += [f"batch  {batch}", f"python {said}", f"scala  {heard}"]
    return "\n".join(lines)
