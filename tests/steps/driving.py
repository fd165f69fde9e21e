"""Drives one step for one key through a schedule, as the engines do."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from headrace.steps import aggregate
from headrace.steps.row import HELD, LATE, Result, Row

MIN = 60_000_000  # micros
COUNT = aggregate.Spec(name="times", kind="count")
SUM = aggregate.Spec(name="total", kind="sum", of="int")
MAX = aggregate.Spec(name="most", kind="max", of="int")
COLLECT = aggregate.Spec(name="all", kind="collect", of="int", n=1_000)


def row(time: int, value: Any = None, offset: int = 0, aggregates: int = 1) -> Row:
    """A row at `time` micros whose every argument is `value`."""
    return Row(time, (time, 0, 0, offset, ""), (value,) * aggregates, f"t/0/{offset}")


@dataclass
class Driven:
    results: list[Result] = field(default_factory=list)
    late: list[Row] = field(default_factory=list)
    dead: list[tuple[str, Row]] = field(default_factory=list)
    held: int = 0
    used: int = 0

    @property
    def told(self) -> list[tuple[Any, ...]]:
        """Results in minutes: (start, end, kind, revision, values...)."""
        return [(_min(r.start), _min(r.end), r.kind, r.revision, *r.values) for r in self.results]


def drive(step: ModuleType, spec: Any, schedule: list[tuple[list[Row], int | None]], clock: list[int] | None = None,
          passes: Any = None) -> Driven:  # fmt: skip
    """Batches of (rows, watermark in ms). Checks after each that rows are conserved and that nothing due was left."""
    state, before, told = step.State(), None, Driven()
    for number, (rows, watermark) in enumerate(schedule):
        under, before = before, watermark
        late = []
        for one in sorted(rows, key=lambda r: r.order):
            verdict = step.step(spec, state, one, under)
            if verdict == LATE:
                late.append(one)
            elif verdict != HELD:
                told.dead.append((verdict, one))
        for one in reversed(late):
            if step.step(spec, state, one, under) == LATE:
                told.late.append(one)
        due = step.due(spec, state)
        if not rows and (due is None or watermark is None or due > watermark):
            continue  # as the engines do: nobody wakes the key
        results, used = step.on_time(spec, state, watermark, clock[number] if clock else 0, passes)
        told.results += results
        told.used += used
        told.held = state.held
        due = step.due(spec, state)
        assert due is None or watermark is None or due > watermark
        assert step.on_time(spec, state, watermark, clock[number] if clock else 0, passes) == ([], 0)
    total = sum(len(rows) for rows, _ in schedule)
    assert total == told.held + told.used + len(told.late) + len(told.dead)
    return told


def _min(time: int | None) -> float | None:
    return None if time is None else time / MIN
