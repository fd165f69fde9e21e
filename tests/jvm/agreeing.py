"""The Scala row steps against the Python ones: the same schedules to both, compared exactly (rule R3, depth 1).

A case is one key's life, as jvm/PureRows.scala reads it. Values stay as they stand in its JSON: joins only carry them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Protocol

from headrace.spark.session import Spark
from headrace.steps.row import Row
from tests.spark.schedules import differs

Case = dict[str, Any]

Given = list[Any]
"""[port, time, offset, cause, values], and the key text if it is another one"""

Run = Callable[[Spark, list[Case]], list[Any]]


class Model(Protocol):
    """A Python step in the words of RowStep.scala. The args of a tombstone are None."""

    def fresh(self) -> Any: ...
    def step(self, state: Any, row: Row, input: int, before: int | None) -> tuple[str, list[Given]]: ...
    def unkeyed(self, row: Row, input: int, before: int | None) -> tuple[str, list[Given]]: ...
    def on_time(self, state: Any, watermark: int | None, clock: int) -> tuple[list[Given], int]: ...
    def due(self, state: Any) -> int | None: ...


def run_scala(spark: Spark, cases: list[Case]) -> list[Any]:
    found: list[Any] = json.loads(spark.jvm.PureRows.run(json.dumps(cases)))
    return found


def check(spark: Spark, cases: list[Case], model_of: Callable[[Case], Model], run: Run = run_scala) -> None:
    """Fails with the number of the first case that differs, and the smallest schedule that still does."""
    for number, (case, scala) in enumerate(zip(cases, run(spark, cases), strict=True)):
        if differs(run_python(case, model_of), scala):
            small = _smallest(spark, case, model_of, run)
            python, scala = run_python(small, model_of), run(spark, [small])[0]
            raise AssertionError(f"case {number}: {_explain(small, python, scala)}")


def run_python(case: Case, model_of: Callable[[Case], Model]) -> list[Any]:
    model, told = model_of(case), []
    state = model.fresh()
    for batch in case["batches"]:
        before, watermark = batch["before"], batch["watermark"]
        verdicts, given, used = [""] * len(batch["rows"]), [], 0
        turn = getattr(model, "turn", lambda _: 0)
        entering = sorted(
            (row[1], turn(row[0]), _row(case, row).order, row[0], n) for n, row in enumerate(batch["rows"])
        )
        for *_, input, number in entering:
            row = _row(case, batch["rows"][number])
            if case["keyed"]:
                verdicts[number], made = model.step(state, row, input, before)
            else:
                verdicts[number], made = model.unkeyed(row, input, before)
            given += made
        due = model.due(state)
        if case["keyed"] and (entering or (due is not None and watermark is not None and due <= watermark)):
            made, used = model.on_time(state, watermark, batch["clock"])
            given += made
        if state.empty:
            state = model.fresh()
        answer = {"verdicts": verdicts, "given": given, "used": used, "held": state.held}
        due = model.due(state)
        told.append(answer if due is None else answer | {"due": due})
    return told


def _row(case: Case, row: list[Any]) -> Row:
    _, time, src, part, off, id, values = row
    args: Any = None if values is None else tuple(values)
    return Row(time, (time, src, part, off, id), args, id or f"{case['topics'][src]}/{part}/{off}")


def _smallest(spark: Spark, case: Case, model_of: Callable[[Case], Model], run: Run) -> Case:
    """Leaves out batches and rows as long as the engines still differ."""
    for smaller in _smaller(case):
        if differs(run_python(smaller, model_of), run(spark, [smaller])[0]):
            return _smallest(spark, smaller, model_of, run)
    return case


def _smaller(case: Case) -> list[Case]:
    batches = case["batches"]
    fewer = [batches[:i] + batches[i + 1 :] for i in range(len(batches))]
    for i, batch in enumerate(batches):
        for j in range(len(batch["rows"])):
            rows = batch["rows"][:j] + batch["rows"][j + 1 :]
            fewer.append([*batches[:i], batch | {"rows": rows}, *batches[i + 1 :]])
    return [case | {"batches": b} for b in fewer if b]


def _explain(case: Case, python: list[Any], scala: list[Any]) -> str:
    lines = [f"{case['spec']} keyed {case['keyed']}"]
    for batch, said, heard in zip(case["batches"], python, scala, strict=True):
        lines += [f"batch  {batch}", f"python {said}", f"scala  {heard}"]
    return "\n".join(lines)
