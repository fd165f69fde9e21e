"""Random schedules of one key, and what the Python steps say to them: what the Scala steps are compared with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from types import ModuleType
from typing import Any

from headrace.steps import aggregate, changed, dedup, forever, session, slices, sliding
from headrace.steps.emission import Policy
from headrace.steps.row import LATE, Result, Row

TOPICS = ("orders", "payments")
SECOND = 1_000_000
STEPS: dict[str, ModuleType] = {
    "slices": slices, "session": session, "sliding": sliding, "forever": forever, "dedup": dedup,
    "changed": changed,
}  # fmt: skip
SHORT = 2  # digits after the point of the short decimal; the long one has 38 digits and can leave 128 bits
SPARK = {
    "int": "bigint", "float": "double", "decimal": f"decimal(18,{SHORT})", "long": "decimal(38,0)", "text": "string",
    "time": "timestamp", "bool": "boolean", "bytes": "binary", "list": "array<string>",
}  # fmt: skip
NUMBERS = ("int", "float", "decimal", "long")
ORDERED = (*NUMBERS, "text", "time")
TAKES = {
    "count": ("", *SPARK), "sum": NUMBERS, "avg": NUMBERS, "stddev": NUMBERS, "min": ORDERED, "max": ORDERED,
    "first": tuple(SPARK), "last": tuple(SPARK), "distinct": (*ORDERED, "bool", "bytes"),
    "distinct_approx": (*ORDERED, "bool", "bytes"), "quantile": ("int", "float", "decimal"), "top": ORDERED,
    "collect": tuple(SPARK),
}  # fmt: skip

Case = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Pace:
    """A batch of a schedule: about when its rows are dated (micros), the watermarks around it, its clock (ms)."""

    top: int
    before: int | None
    watermark: int | None
    clock: int


def pace_of(random: Random, batches: int, start: int) -> list[Pace]:
    found: list[Pace] = []
    top, watermark, clock = start, None, 1_000
    for _ in range(batches):
        top += random.choice((0, 1, 5, 30)) * SECOND
        before = watermark
        if random.random() < 0.8:
            moved = (top + random.choice((-40, -10, -3, 0, 2, 200)) * SECOND) // 1_000 + random.randint(0, 1)
            watermark = moved if watermark is None else max(watermark, moved)
        clock += random.choice((0, 400, 2_000, 15_000))
        found.append(Pace(top, before, watermark, clock))
    return found


def case_of(random: Random, pace: list[Pace] | None = None, *, by_clock: bool = True, ranked: float = 0.1) -> Case:
    """A random step over random rows. `by_clock`: results may follow the batch's clock; `ranked`: how many windows are
    of their top rows, whose argument comes with the row."""
    kind = random.choice((*STEPS, "slices", "slices"))
    spec = _spec(random, kind, by_clock, ranked)
    aggregates = spec.get("aggregates", ())
    compared = random.choices([of for of in SPARK if of != "float"], k=len(spec.get("values", ())))
    having = None
    if aggregates and spec["having"]:
        having = {"value": 0, "least": random.randint(0, 3)}  # the first aggregate is a count then
    unit = random.choice((SECOND, SECOND // 1_000, 7))  # event times on a grid meet window bounds, others do not
    pace = pace or pace_of(random, random.randint(1, 7), random.randint(-60, 10_000) * SECOND)
    batches, offset = [], 0
    for step in pace:
        rows = []
        for _ in range(random.choice((0, 1, 1, 2, 5, 12))):
            behind = random.choice((0, 0, 0, -5, -20, 1, 4, 20, 90))
            time = step.top - behind * SECOND + random.randint(0, 3) * unit
            offset += 1
            id = random.choice(("", "", random.randbytes(16).hex()))
            args = [value_of(random, a["of"], a["scale"]) for a in aggregates] + [_few(random, of) for of in compared]
            args += [random.randbytes(2).hex()] if is_ranked(spec) else []
            rows.append([time, random.randint(0, 1), random.randint(0, 2), offset, id, args])
        batches.append({"rows": rows, "before": step.before, "watermark": step.watermark, "clock": step.clock})
    return {
        "spec": spec,
        "types": [None if not a["of"] else spark_type(a) for a in aggregates]
        + [SPARK[of] for of in (*compared, *["bytes"] * is_ranked(spec))],
        "results": [result_type(a) for a in aggregates],
        "topics": TOPICS,
        "having": having,
        "batches": batches,
    }


def is_ranked(spec: dict[str, Any]) -> bool:
    return any(a["kind"] == "top_rows" for a in spec.get("aggregates", ()))


def _spec(random: Random, kind: str, by_clock: bool, ranked: float) -> dict[str, Any]:
    if kind == "dedup":
        return dedup.Spec(within=random.choice((1, 10, 60)) * SECOND).as_json()
    if kind == "changed":
        count = random.randint(1, 2)
        return changed.Spec(keep=random.choice((1, 10, 60)) * SECOND, values=tuple(range(count))).as_json()
    having = random.random() < 0.3
    values: dict[str, Any] = {
        "having": having,
        "aggregates": tuple(
            aggregate_of(random, "count" if having and i == 0 else "", i) for i in range(random.randint(1, 4))
        ),
    }
    if random.random() < ranked:
        values = {"having": False, "aggregates": (replace(aggregate_of(random, "top", 0), kind="top_rows"),)}
    lateness = random.choice((0, 0, 5, 30)) * SECOND
    if kind == "sliding":
        return sliding.Spec(size=random.choice((1, 10, 45)) * SECOND, lateness=lateness, **values).as_json()
    emit = random.choice((Policy(), Policy(on_change=True), Policy(early=2_000 if by_clock else 0)))
    if kind == "forever":
        often, ttl = emit if emit.before_close else Policy(on_change=True), random.choice((0, 2, 10, 40)) * SECOND
        return forever.Spec(emit=often, ttl=ttl, **values).as_json()
    if kind == "session":
        return session.Spec(gap=random.choice((2, 10, 40)) * SECOND, lateness=lateness, emit=emit, **values).as_json()
    every = random.choice((2, 5, 15)) * SECOND
    size = random.choice((every, every, 3 * every, every * 3 // 2, every + SECOND))
    offset = random.choice((0, 0, SECOND))
    return slices.Spec(size=size, every=every, offset=offset, lateness=lateness, emit=emit, **values).as_json()


def aggregate_of(random: Random, kind: str, number: int, kinds: Sequence[str] = tuple(TAKES)) -> aggregate.Spec:
    plain = kind == "count"
    kind = kind or random.choice(kinds)
    of = "" if plain else random.choice(TAKES[kind])
    scale = SHORT if of == "decimal" else 0
    digits = {"sum": 28, "avg": 22}.get(kind, 18) if of == "decimal" else 38
    return aggregate.Spec(
        name=f"v{number}",
        kind=kind,
        of="decimal" if of == "long" else of,
        scale=scale,
        precision=digits if of in ("decimal", "long") else 0,
        n=random.randint(1, 4) if kind in ("top", "collect") else 0,
        q=random.choice((0.0, 0.25, 0.5, 0.99, 1.0)) if kind == "quantile" else 0.0,
    )


def spark_type(a: dict[str, Any]) -> str:
    return SPARK["long" if a["of"] == "decimal" and a["scale"] == 0 else a["of"]]


def result_type(a: dict[str, Any]) -> str:
    match a["kind"]:
        case "count" | "distinct" | "distinct_approx":
            return "bigint"
        case "sum" | "avg" if a["of"] == "decimal":
            return f"decimal({a['precision']},{a['scale'] + 4 * (a['kind'] == 'avg')})"
        case "avg" | "quantile" | "stddev":
            return "double"
        case "top_rows":
            return "array<binary>"
        case "top" | "collect":
            return f"array<{spark_type(a)}>"
        case _:
            return spark_type(a)


def _few(random: Random, of: str) -> Any:
    """One of two values or null, so that a key's rows often say the same."""
    return value_of(Random(random.randint(0, 2)), "decimal" if of == "long" else of, SHORT if of == "decimal" else 0)


def value_of(random: Random, of: str, scale: int) -> Any:
    if not of or random.random() < 0.15:
        return None
    match of:
        case "int":
            return random.choice((random.randint(-3, 3), random.randint(-(2**63), 2**63 - 1)))
        case "float":
            return random.choice(
                (0.0, -0.0, 0.1, 1e300, math.nan, math.inf, random.uniform(-1e3, 1e3), random.uniform(0, 9))
            )
        case "decimal" if scale:
            return random.randint(-(10 ** random.randint(1, 18)) + 1, 10 ** random.randint(1, 18) - 1)
        case "decimal":
            return random.choice((random.randint(-9, 9), 10**38 - 1, 1 - 10**38))
        case "text":
            return random.choice(("", "a", "b", "ä", "\U0001f600", "\uffee", f"t{random.randint(0, 30)}"))
        case "time":
            return random.randint(-(10**15), 10**16)
        case "bool":
            return random.random() < 0.5
        case "bytes":
            return random.randbytes(random.randint(0, 2)).hex()
        case _:
            return [random.choice(("x", "y", "")) for _ in range(random.randint(0, 3))]


def run_python(case: Case) -> list[Any]:
    module, spec = STEPS[case["spec"]["step"]], _made(case["spec"])
    having = case["having"]
    state, told = module.State(), []

    def passes(result: Result) -> bool:
        return bool(result.values[having["value"]] >= having["least"])

    for batch in case["batches"]:
        verdicts: list[str] = [""] * len(batch["rows"])
        rows = sorted((_row(case, row), number) for number, row in enumerate(batch["rows"]))
        for row, number in rows:
            verdicts[number] = module.step(spec, state, row, batch["before"])
        for row, number in reversed([(row, number) for row, number in rows if verdicts[number] == LATE]):
            verdicts[number] = module.step(spec, state, row, batch["before"])
        results: list[Result] = []
        used = 0
        due = module.due(spec, state)
        if rows or (batch["watermark"] is not None and due is not None and due <= batch["watermark"]):
            results, used = module.on_time(spec, state, batch["watermark"], batch["clock"], passes if having else None)
        if state.empty:
            state = module.State()
        shown = [[*r[:4], [_shown(v) for v in r.values], r.time, r.cause] for r in results]
        batch_told = {"verdicts": verdicts, "results": shown, "used": used, "held": state.held}
        due = module.due(spec, state)
        told.append(batch_told if due is None else batch_told | {"due": due})
    return told


def _made(spec: dict[str, Any]) -> Any:
    """The spec that `as_json` made this of."""
    values = {name: value for name, value in spec.items() if name != "step"}
    if "aggregates" in values:
        values["aggregates"] = tuple(aggregate.Spec(**a) for a in values["aggregates"])
    if "emit" in values:
        values["emit"] = Policy(**values["emit"])
    return STEPS[spec["step"]].Spec(**values)


def _row(case: Case, row: list[Any]) -> Row:
    time, src, part, off, id, args = row
    plain: tuple[Any, ...] = tuple(
        bytes.fromhex(v) if v is not None and type == "binary" else v
        for type, v in zip(case["types"], args, strict=True)
    )
    plain = (plain,) if is_ranked(case["spec"]) else plain
    return Row(time, (time, src, part, off, id), plain, id or f"{TOPICS[src]}/{part}/{off}")


def _shown(value: Any) -> Any:
    if isinstance(value, list):
        return [_shown(v) for v in value]
    return value.hex() if isinstance(value, bytes) else value


def differs(one: Any, other: Any) -> bool:
    """Exactly equal, but for floats: within 1e-9 (rule D5)."""
    if isinstance(one, float) and isinstance(other, float | int):
        return not math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    if isinstance(one, list | tuple) and isinstance(other, list):
        return len(one) != len(other) or any(map(differs, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() != other.keys() or any(differs(one[k], other[k]) for k in one)
    return bool(one != other)
