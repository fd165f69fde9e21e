"""What a stream would say of an event that comes now: its own steps, run over what is known online.

What cannot be known here is null: features that are not kept online, and what tables say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from headrace.base.clock import micros
from headrace.base.errors import UsageError
from headrace.expr import by_name, compile
from headrace.features.online import Coming, Online
from headrace.model.declared import Enriched, Filter, Node, Project, Read
from headrace.model.featured import Featured
from headrace.steps import plain

Row = dict[str, Any]
Stage = Callable[[Row, int], Row | None]
"""From a row and its time to what a step makes of it; None: it is filtered."""


class Ahead:
    """Called with an event, it gives the row that the stream would; None: the stream leaves such events out."""

    def __init__(self, stream: Node, online: Mapping[str, Online]) -> None:
        """`online`: features that are read, by name."""
        self._stages: list[Stage] = []
        node = stream
        while not isinstance(node, Read):
            self._stages.append(_stage(node, online))
            node = node.inputs[0]
        self._stages.reverse()
        self._event = node.event

    def __call__(self, event: Any) -> Row | None:
        if not isinstance(event, self._event.cls):
            raise UsageError(f"{event!r} is no {self._event.name}", why="the stream is made of those")
        row: Row | None = {column.name: getattr(event, column.name) for column in self._event.columns}
        time = micros(getattr(event, self._event.time))
        for stage in self._stages:
            if row is not None:
                row = stage(row, time)
        return row


def _stage(node: Node, online: Mapping[str, Online]) -> Stage:
    match node:
        case Filter():
            condition = compile(node.condition, by_name)
            return lambda row, time: row if condition(row) else None
        case Project():
            values = _values(node)
            return lambda row, time: {name: value(row) for name, value in values.items()}
        case Enriched():
            values, (one, other) = _values(node), node.names
            unknown = dict.fromkeys(column.name for column in node.table.columns)
            return lambda row, time: {name: value({**row, one: row, other: unknown}) for name, value in values.items()}
        case Featured():
            return _told(node, online.get(node.name))
    raise UsageError(
        f"what {node.name or type(node).__name__.lower()} says is not known ahead",
        why="an event can be followed through features, conditions, selects and enrichments",
        fix="ask for a stream before it",
    )


def _values(node: Project | Enriched) -> dict[str, Callable[[Any], Any]]:
    return {name: compile(value, by_name) for name, value in node.values}


def _told(node: Featured, online: Online | None) -> Stage:
    """The row with its features, as far as they are online."""
    unknown = dict.fromkeys(column.name for column in node.features)
    if online is None:
        return lambda row, time: row | unknown
    keys = {name: compile(value, by_name) for name, value in node.keys}
    asked = [compile(value, by_name) for value in node.asked(0)]
    into = [plain.into(value.type) for value in node.asked(0)]
    known_by = None if node.once is None else compile(node.once, by_name)

    def told(row: Row, time: int) -> Row:
        coming = Coming(
            {name: value(row) for name, value in keys.items()},
            time,
            None if known_by is None else known_by(row),
            plain.each(into, [value(row) for value in asked]),
        )
        return row | unknown | online.tell(coming)

    return told
