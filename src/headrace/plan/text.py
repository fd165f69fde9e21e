"""The plan's stable text form: one line a step, equal plans give equal lines; the fingerprint is its hash.

A checkpoint keeps this text: a changed plan is refused with the lines that differ (rule 5 of the guarantees).
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Callable
from typing import Any

from headrace.base.duration import show
from headrace.base.ids import stable_id
from headrace.model import changing, declared, matched
from headrace.model.declared import Node
from headrace.plan.plan import Exit, Flow, Input, Step


def lines(flow: Flow) -> tuple[str, ...]:
    """The flow, line by line, in the order data walks it."""
    said = [f"{step.name}: {_origin(flow, step.inputs)}{_SAID[type(step.node)](step.node)}" for step in flow.steps]
    said += [
        f"to {e.target.label}: {form(e)}from {_port(flow, e.input)}, key {names(e.key)}, {_weaker(e)}"
        + ", ".join(map(str, e.columns))
        for e in flow.exits
    ]
    return tuple(said)


def fingerprint(flow: Flow) -> str:
    """A hash of the text form."""
    return hashlib.sha256("\n".join(lines(flow)).encode()).hexdigest()[:32]


def difference(before: tuple[str, ...], after: tuple[str, ...]) -> str:
    """What changed, as lines with - and +."""
    changed = difflib.unified_diff(before, after, lineterm="", n=0)
    return "\n".join(line for line in changed if not line.startswith(("---", "+++", "@@")))


def names(key: tuple[tuple[str, object], ...]) -> str:
    return ", ".join(name if str(value) == name else f"{value} as {name}" for name, value in key) or "none"


def form(leaving: Exit) -> str:
    """How rows are written, unless as they are."""
    return "" if leaving.form == "rows" else f"{leaving.form} "


def _weaker(leaving: Exit) -> str:
    return "" if leaving.guarantee == "exactly-once" else f"{leaving.guarantee}, "


def describe(step: Step) -> str:
    """A step's own words, without its name and input."""
    return _SAID[type(step.node)](step.node)


def _origin(flow: Flow, inputs: tuple[Input, ...]) -> str:
    return f"from {' and '.join(_port(flow, at) for at in inputs)}, " if inputs else ""


def _port(flow: Flow, at: Input) -> str:
    name = flow.step(at.step).name
    return name if at.port == "rows" else f"{name}.{at.port}"


def _read(node: declared.Read) -> str:
    disorder = "marked" if node.disorder is None else f"disorder {show(node.disorder)}"
    idle = "never idle" if node.idle is None else f"idle {show(node.idle)}"
    columns = ", ".join(map(str, node.columns))
    return f"read {node.event.topic} by {node.event.time}, {disorder}, {idle}, skew {show(node.skew)}: {columns}"


def _read_table(node: declared.ReadTable) -> str:
    history = "" if node.history is None else f", history {show(node.history)}"
    ttl = "" if node.ttl is None else f", ttl {show(node.ttl)}"
    columns = ", ".join(map(str, node.columns))
    by = "as its changes say" if node.changes else f"by {node.event.time}"
    return f"table {node.event.topic} {by}{history}{ttl}: {columns}"


def _joined(node: declared.Joined) -> str:
    on = " and ".join(f"{one} = {other}" for one, other in node.on)
    within = f"within {show(node.lower)} to {show(node.upper)}"
    return f"join {' and '.join(node.names)}, {node.how}, on {on}, {within}: {_values(node.values)}"


def _enriched(node: declared.Enriched) -> str:
    when = "now" if not node.as_of else "as of its time" + ("" if node.wait else ", without waiting")
    return (
        f"enrich {node.names[0]} with {node.names[1]} {when}, on {', '.join(map(str, node.on))}: {_values(node.values)}"
    )


def _looked_up(node: declared.LookedUp) -> str:
    rows = stable_id(*map(repr, node.rows))[:8]  # others give other results, so they are another plan
    return (
        f"enrich {node.names[0]} with {node.names[1]}, {len(node.rows)} static rows {rows}, "
        f"on {', '.join(map(str, node.on))}: {_values(node.values)}"
    )


def _view_join(node: changing.ViewJoin) -> str:
    on = ", ".join(f"{own} = {name}" for own, (name, _) in zip(node.on, node.right_key, strict=True))
    return f"link by key {names(node.key)} to what {on} points to{', or nothing' if node.outer else ''}"


def _settled(node: changing.Settled) -> str:
    how = "left" if node.of.outer else "inner"
    return f"view of {' and '.join(node.names)}, {how}, key {names(node.of.key)}: {_values(node.values)}"


def _values(values: tuple[tuple[str, object], ...]) -> str:
    return ", ".join(f"{value} as {name}" for name, value in values)


def _aggregated(node: declared.Aggregated) -> str:
    values = ", ".join(map(str, node.values))
    having = "" if node.having is None else f", having {node.having}"
    return (
        f"window {node.window}, key {names(node.keys)}, lateness {show(node.lateness)}, {node.emit}: {values}{having}"
    )


def _pattern(node: declared.Pattern) -> str:
    steps = ", ".join(_taking(node, item) for item in node.steps)
    within = f"{'keep' if node.kept else 'within'} {show(node.within)}"
    after = f"after a match {node.after}{f' {node.to}' if node.to else ''}"
    return f"pattern by {names(node.keys[0])}: {steps}; {within}; {after}: {_values(node.values)}"


def _taking(node: declared.Pattern, item: matched.Step | matched.Group) -> str:
    """A step of a pattern, in the words of its declaration."""
    said = _often(item) + (" optional" if item.optional else "")
    within = f" within {show(item.within)}" if item.within else ""
    if isinstance(item, matched.Group):
        return f"{item.how} ({', '.join(_taking(node, one) for one in item.steps)}){said}{within}"
    where = f" where {item.fit.text}" if item.fit.text else ""
    until = f" until {item.until.text}" if item.until else ""
    greedy = " greedy" if item.greedy else ""
    return f"{item.how} {item.name}{said}{greedy}{within} of {node.names[item.input]}{where}{until}"


def _often(item: matched.Step | matched.Group) -> str:
    if item.most == 1:
        return ""
    most = " or more" if item.most is None else "" if item.most == item.least else f" to {item.most}"
    return f" {item.least}{most} times" + {"then": "", "next": " consecutive", "then_any": " any"}[item.inner]


def _featured(node: declared.Featured) -> str:
    windows = "".join(
        f"; over {show(over.size)}{f' up to {show(over.delay)} ago' if over.delay else ''}"
        f"{f' in tiles of {show(over.tile)}' if over.tile else ''}"
        f"{f' of {node.others[over.input - 1].name}' if over.input else ''}: " + ", ".join(map(str, over.values))
        for over in node.overs
    )
    before = "".join(
        f"; {one.column.name} of the row before" if one.n == 1 else f"; {one.column.name} of {one.n} rows before"
        for one in node.before
    )
    once = "" if node.once is None else f", once by {node.once}"
    return (
        f"features by {names(node.keys)}, forgotten after {show(node.ttl)}, lateness {show(node.lateness)}, "
        f"at most {node.most:,} rows{once}{windows}{before}{'; seen' if node.seen else ''}"
    )


def _mapped(node: declared.MapRows) -> str:
    columns = ", ".join(map(str, node.columns))
    return f"{'flat map' if node.many else 'map'} by {_called(node)}: {columns}"


def _called(node: declared.MapRows | declared.FilterRows) -> str:
    function = getattr(node.function, "__qualname__", repr(node.function))
    return f"{function}, retries {node.retries}, on error {node.on_error}"


_SAID: dict[type, Callable[[Any], str]] = {
    declared.Read: _read,
    declared.Filter: lambda node: f"where {node.condition}",
    declared.ReadTable: _read_table,
    declared.Project: lambda node: f"select {_values(node.values)}",
    declared.Union: lambda node: "union",
    declared.Joined: _joined,
    declared.Enriched: _enriched,
    declared.LookedUp: _looked_up,
    declared.Featured: _featured,
    declared.Pattern: _pattern,
    declared.Decided: lambda node: f"decide by the policy {node.policy}, {node.default} until there is one",
    declared.MapRows: _mapped,
    declared.FilterRows: lambda node: f"where {_called(node)}",
    declared.Dedup: lambda node: f"dedup by {names(node.id)} within {show(node.within)}",
    declared.Changed: lambda node: f"changes of {', '.join(node.values)} by {names(node.keys)}, kept {show(node.keep)}",
    declared.Aggregated: _aggregated,
    changing.Versions: lambda node: "versions become changes",
    changing.ViewFilter: lambda node: f"rows where {node.condition}",
    changing.ViewProject: lambda node: f"rows with {_values(node.values)}",
    changing.ViewJoin: _view_join,
    changing.Settled: _settled,
    changing.Grouped: lambda node: f"group by {names(node.keys)}: {', '.join(map(str, node.values))}",
    changing.ChangeRows: lambda node: f"changes as rows, key {names(node.key)}",
}
assert set(_SAID) == set(Node.__args__) - {declared.Side}
