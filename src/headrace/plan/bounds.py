"""How much state a step can hold: in words for people, in bytes as an estimate."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from headrace.base.duration import show
from headrace.expr.types import BOOL, BYTES, TEXT, Columns, DecimalType, ListType, Type
from headrace.model import changing, declared
from headrace.model.aggregate import Bound
from headrace.model.changing import Changing
from headrace.model.window import Forever, Hopping, Session, Sliding, Tumbling
from headrace.plan.plan import Step, slice_of
from headrace.steps.spec import DELETED, remembered

ZERO = timedelta(0)
TEXT_GUESS = 16
"""Bytes assumed for a text value; nobody knows before the data come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateBound:
    """What one key can hold at most, and until when."""

    words: str
    bytes_per_key: int
    exact: bool  # False: grows with the rows in the window, the figure is per row


def bound(step: Step) -> StateBound | None:
    """The bound of a stateful step; None for the others."""
    node = step.node
    if isinstance(node, declared.Dedup):
        return StateBound(
            words=f"one mark per id, dropped {show(node.within)} of event time after the first",
            bytes_per_key=24,
            exact=True,
        )
    if isinstance(node, declared.Changed):
        compared = [column for column in node.columns if column.name in node.values]
        words = f"what its last row said, dropped {show(node.keep)} of event time after it"
        return StateBound(words=words, bytes_per_key=16 + _row(tuple(compared)), exact=True)
    if isinstance(node, declared.Joined):
        held = ", ".join(
            f"each row of {name} {show(reach)} of event time"
            for name, reach in zip(node.names, (max(node.upper, ZERO), max(-node.lower, ZERO)), strict=True)
        )
        size = max(sum(_value(c.type) for c in of.columns) for of in node.inputs)
        return StateBound(words=held, bytes_per_key=24 + size, exact=False)
    if isinstance(node, declared.Enriched):
        return _enriched(node.table, node.as_of)
    if isinstance(node, Changing):
        return _view(node)
    if isinstance(node, declared.Pattern):
        words = f"partial matches of the last {show(node.within)}, at most {node.limit:,}, and rows up to their turn"
        return StateBound(words=words, bytes_per_key=48 + sum(_value(c.type) for c in node.layout), exact=False)
    if isinstance(node, declared.Featured):
        return _features(node)
    if not isinstance(node, declared.Aggregated):
        return None
    values = sum(_aggregate(value) for value in node.values) + node.values[0].n * _row(node.ranked)
    window, lateness = node.window, node.lateness
    if isinstance(window, Tumbling | Hopping):
        piece = slice_of(window)
        # Open windows reach one size back from the watermark, lateness keeps closed ones, one piece is being filled.
        count = -(-(window.size + lateness) // piece) + 1
        what = "window" if isinstance(window, Tumbling) else "slice"
        words = f"up to {count} {what}s of {show(piece)}, each dropped {_after(lateness)} its last window closes"
        return StateBound(words=words, bytes_per_key=8 + count * (12 + values), exact=True)
    if isinstance(window, Session):
        words = f"the open sessions, each dropped {_after(lateness)} a silence of {show(window.gap)}"
        return StateBound(words=words, bytes_per_key=28 + values, exact=True)
    if isinstance(window, Sliding):
        words = f"every row of the last {show(window.size + lateness)} behind the watermark"
        row = 16 + sum(_value(v.argument.type) for v in node.values if v.argument is not None)
        return StateBound(words=words, bytes_per_key=row, exact=False)
    assert isinstance(window, Forever)
    kept = "kept for ever" if window.ttl is None else f"forgotten after a silence of {show(window.ttl)}"
    return StateBound(words=f"one value per key, {kept}", bytes_per_key=20 + values, exact=True)


def _enriched(table: declared.ReadTable, as_of: bool) -> StateBound:
    size = 16 + _row(table.columns)
    if not as_of:
        last = "kept until it is deleted" if table.ttl is None else f"dropped {show(table.ttl)} of event time after it"
        return StateBound(words=f"the table's current row, {last}", bytes_per_key=size, exact=True)
    assert table.history is not None
    words = f"the table's versions of the last {show(table.history)}, and the newest before that"
    words += "" if table.ttl is None else f", dropped {show(table.ttl + table.history)} of event time after it"
    return StateBound(words=words, bytes_per_key=size, exact=False)


def _features(node: declared.Featured) -> StateBound:
    """A row's time, and what the windows and `last` ask of it; of windows in tiles what their rows say."""
    last = max((one.n for one in node.before), default=0)
    ever = f"the last {last:,}" if last > 1 else "the last row" if last else ""
    back = f"{_back(node, 0)} the watermark" if any(over.input == 0 for over in node.overs) else ""
    held = " and ".join(filter(None, (back, ever)))
    own = f"{held}, at most {node.most:,}" if held else "none of its own rows"
    words = f"{own}; forgotten {show(node.ttl + node.lateness)} after its last"
    for number, other in enumerate(node.others, 1):
        words += f"; of {other.name} {_back(node, number).removesuffix(' behind')}, at most {node.most:,}"
    if tiled := [over for over in node.overs if over.tile]:
        counts = ", ".join(f"{over.size // over.tile} of {show(over.tile)}" for over in tiled)
        start = 8 + (16 if node.seen else 0)
        size = sum(over.size // over.tile * (start + sum(map(_aggregate, over.values))) for over in tiled)
        words += f"; older rows in tiles: at most {counts}, about {size:,} bytes"
    marks = (8 if node.once is not None else 0) + (16 if node.seen else 0)
    return StateBound(
        words=words, bytes_per_key=8 + marks + sum(_value(one.type) for one in node.asked(0)), exact=False
    )


def _back(node: declared.Featured, number: int) -> str:
    """The rows that windows over an input need one by one; those in tiles while a row can come that is older."""
    exact = [over.reach for over in node.overs if over.input == number and not over.tile]
    reach = max(exact, default=ZERO) + node.lateness
    return f"every row of the last {show(reach)} behind" if reach else "every row ahead of"


def _view(node: Changing) -> StateBound | None:
    """Tables and views remember rows until they are deleted, and a deletion for a while (steps/spec.py)."""
    row = 24 + _row(node.columns)
    match node:
        case changing.Versions():
            ttl = "" if node.of.ttl is None else f" renewed in the last {show(node.of.ttl)} of event time"
            words = f"one row per key of {node.of.name}{ttl}, a deletion for {show(remembered(node.of))}"
            return StateBound(words=words, bytes_per_key=row, exact=True)
        case changing.ViewJoin():
            links = "the row it points to, and one link per row of the left that points there"
            return StateBound(words=links, bytes_per_key=24 + _row(node.left.columns), exact=False)
        case changing.Settled():
            words = f"one row per key of {node.names[0]}, a deletion for {show(DELETED)}"
            return StateBound(words=words, bytes_per_key=row, exact=True)
        case changing.Grouped():
            listed = [value for value in node.values if value.kind in _MULTISET]
            words = "one row per group" + (", and how often each value is there" if listed else "")
            return StateBound(words=words, bytes_per_key=row + sum(map(_aggregate, node.values)), exact=not listed)
    return None


_MULTISET = ("min", "max", "top", "distinct", "quantile")
"""Aggregates that are read off all values of a group (steps/retractable.py)."""


def _row(columns: Columns) -> int:
    return sum(_value(column.type) for column in columns)


def _after(lateness: timedelta) -> str:
    return f"{show(lateness)} after" if lateness else "when"


def _aggregate(value: Bound) -> int:
    size = 8 if value.argument is None else _value(value.argument.type)
    return {
        "count": 8,
        "sum": 16,
        "avg": 24,
        "stddev": 40,
        "distinct": 10 * size,  # some different values; from DISTINCT_EXACT on 4 kB of HyperLogLog
        "distinct_approx": 4096,
        "quantile": 512,
        "first": size + 24,
        "last": size + 24,
        "top": value.n * size,
        "top_rows": value.n * (size + 24),
        "collect": value.n * size,
    }.get(value.kind, size)


def _value(type: Type) -> int:
    if isinstance(type, DecimalType):
        return 8 if type.precision <= 18 else 16
    if isinstance(type, ListType):
        return 8 * _value(type.item)
    return 1 if type == BOOL else TEXT_GUESS if type in (TEXT, BYTES) else 8
