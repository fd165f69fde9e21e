"""A plan in words: sources, steps with keys and state bounds, exits, what each mode allows, settings that matter."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

from headrace.base.duration import show
from headrace.model import declared
from headrace.model.output import kind
from headrace.model.window import AtClose
from headrace.plan import text
from headrace.plan.bounds import bound
from headrace.plan.modes import MODES, why_not
from headrace.plan.places import shuffled
from headrace.plan.plan import CALLED, Exit, Flow, Plan, Step

KEYS_GUESS = 100_000
WIDTH = 120


def explain(plan: Plan, *, partitions: Mapping[str, int] | None = None, shuffle_partitions: int = 2) -> str:
    """The whole plan as text; `partitions` per topic where a broker was asked."""
    said = [f"{plan.app} {plan.version}"]
    for flow in plan.flows:
        said += ["", f"flow {flow.name}  ({text.fingerprint(flow)[:8]})", *_flow(flow, partitions or {})]
        said += [
            _row("spark", f"shuffle partitions {shuffle_partitions}: frozen into the checkpoint at the first start"),
            _row("", "state in RocksDB, changelog checkpoints; session time zone UTC"),
        ]
    return "\n".join(said) + "\n"


def _flow(flow: Flow, partitions: Mapping[str, int]) -> list[str]:
    said: list[str] = []
    for step in flow.steps:
        said += _step(flow, step) if step.inputs else _read(flow, step, partitions)
    for leaving in flow.exits:
        origin = flow.step(leaving.input.step).name
        port = "" if leaving.input.port == "rows" else f".{leaving.input.port}"
        origin = f"{text.form(leaving)}from {origin}{port}"
        place = f"{kind(leaving.target)} {leaving.target.name}"
        by = f"key {text.names(leaving.key)}" if leaving.key or not leaving.stored else "appended"
        said.append(_row("to", f"{place}, {origin}, {by}"))
        said.append(_row("", _guaranteed(flow, leaving)))
    for topic in flow.topics:
        said.append(_row("dead", f"topic {topic}.dead: what cannot be decoded or breaks its schema"))
    said.append(_row("time", "watermark = least over streams and partitions of (greatest event time - disorder)"))
    for mode in MODES:
        reasons = why_not(flow, mode)
        said.append(_row(mode, "yes" if not reasons else "no: " + "; ".join(reasons)))
    return said


def _guaranteed(flow: Flow, leaving: Exit) -> str:
    if leaving.guarantee == "at-most-once":
        return "at most once: what a batch had yet to write when its driver died is lost"
    if leaving.stored:
        return _STORED[leaving.guarantee]
    real_time = leaving.guarantee == "exactly-once" and not why_not(flow, "realtime")
    said = leaving.guarantee.replace("-", " ") + (", in real time at least once" if real_time else "")
    return f"{said}; every record carries its stable id in the header hr-id"


_STORED = {
    "exactly-once": "exactly once: the store keeps a ledger of batches, one that comes again is dropped",
    "at-least-once": "at least once: a batch that comes again after a crash is written again",
}


def _read(flow: Flow, step: Step, partitions: Mapping[str, int]) -> list[str]:
    node = step.node
    assert isinstance(node, declared.Read | declared.ReadTable)
    count = partitions.get(node.event.topic)
    if isinstance(node, declared.ReadTable):
        width = f", {count} partitions" if count else ""
        time = "counts in the watermark" if flow.counts(step) else "does not hold the watermark back"
        lives = "" if node.ttl is None else f"; a row that no record renews for {show(node.ttl)} is gone"
        return [
            _row(
                "table", f"topic {node.event.topic}{width}, key {', '.join(node.event.key)}, loaded before the streams"
            ),
            _row("", f"version time {'of its changes' if node.changes else node.event.time}{lives}; it {time}"),
        ]
    disorder = "marked by its producers" if node.disorder is None else f"disorder {show(node.disorder)}"
    idle = "never idle" if node.idle is None else f"idle after {show(node.idle)}"
    return [
        _row(
            "read", f"topic {node.event.topic}" + (f", {count} partitions" if count else "") + f", {disorder}, {idle}"
        ),
        _row("", f"event time {node.event.time}, at most {show(node.skew)} ahead of now"),
    ]


def _step(flow: Flow, step: Step) -> list[str]:
    said = [_row(step.name, text.describe(step))]
    if step.hold:
        said.append(_row("", f"meets the watermark less {show(step.hold)}, held by the steps before it (rule T6)"))
    if step.kernel and step.level not in shuffled(flow):
        said.append(_row("", "no shuffle: its rows lie by this key already"))
    limit = bound(step)
    if limit is not None:
        total = limit.bytes_per_key * KEYS_GUESS
        per = "key" if limit.exact else "row"
        said.append(_row("", f"state per key: {limit.words}"))
        said.append(
            _row("", f"about {limit.bytes_per_key:,} bytes per {per}: {_size(total)} for {KEYS_GUESS:,} {per}s")
        )
    if isinstance(step.node, declared.Aggregated) and not flow.reads(step.ordinal, "late"):
        said.append(_row("", "late rows are counted; nobody reads .late"))
    if isinstance(step.node, declared.LookedUp):
        rows = f"a static table of {len(step.node.rows):,} rows, in the plan itself"
        said.append(_row("", f"{rows}: other rows are another plan"))
    if isinstance(step.node, CALLED):
        words = "a Python function, in a process of its own for each task: rows go there and back, in real time one by "
        said.append(_row("", words + "one, which takes milliseconds; rows of branches beside it pass by that way too"))
    if isinstance(step.node, declared.Decided):
        words = f"rules and model from the topic {step.node.policy}.policy, followed while it runs: docs/policies.md"
        said.append(_row("", words))
    if isinstance(step.node, declared.Featured):
        words = "every row is told at once, and never corrected: by time within a batch, in real time as rows arrive"
        said.append(_row("", words))
    if isinstance(step.node, declared.Pattern):
        words = "in real time rows have their turn as they arrive (rule P1); never and timeouts come at the end of an "
        said.append(_row("", words + "interval, up to two intervals late, four while a twin is away (rule R5)"))
    if isinstance(step.node, declared.Aggregated):
        words = "counts every result of {}, those that replace another too: docs/windows.md"
        said += [_row("", words.format(window)) for window in _revised(flow, step)]
    return said


def _revised(flow: Flow, step: Step) -> list[str]:
    """Windows before a step that may tell it one window twice: provisional results, corrections, retractions. Who asks
    for a `kind` on the way has thought of it."""
    found = []
    for entry in step.inputs:
        before = flow.step(entry.step)
        node = before.node
        if isinstance(node, declared.Aggregated):
            if entry.port == "rows" and (node.lateness or node.emit != AtClose()):
                found.append(before.name)
        elif not (isinstance(node, declared.Filter) and any(ref.name == "kind" for ref in node.condition.refs())):
            found += _revised(flow, before)
    return found


def _row(label: str, words: str) -> str:
    """A label and what is said of it, in as many lines as that takes."""
    return textwrap.fill(
        words,
        WIDTH,
        initial_indent=f"  {label:<11} ",
        subsequent_indent=" " * 14,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _size(count: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:,.0f} {unit}" if unit == "bytes" else f"{count:,.1f} {unit}"
        count /= 1000
    raise AssertionError
