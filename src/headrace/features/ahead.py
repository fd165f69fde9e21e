"""What a stream would say of an event that comes now: its own steps, run over what is known online.

What cannot be known here is null: features that are not kept online, and what tables say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from headrace.base.clock import micros
from headrace.base.errors import UsageError
from headrace.expr import by_name, compile
from headrace.features.online import Coming, Key, Online, Sets, Together
from headrace.model.declared import Enriched, Filter, Node, Project, Read
from headrace.model.featured import Featured
from headrace.steps import plain

Row = dict[str, Any]
Found = Mapping[str, tuple[Key, Sets]]
"""What is online, by name of the features, and of which key."""
Stage = Callable[[Row, int, Found], Row | None]
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
        told = [place for place, stage in enumerate(self._stages) if isinstance(stage, _Told)]
        self._first = self._stages[: max(told, default=-1) + 1]
        several = [stage.online for stage in self._first if isinstance(stage, _Told)]
        self._together = Together(several) if len(several) > 1 else None

    def __call__(self, event: Any) -> Row | None:
        if not isinstance(event, self._event.cls):
            raise UsageError(f"{event!r} is no {self._event.name}", why="the stream is made of those")
        row: Row | None = {column.name: getattr(event, column.name) for column in self._event.columns}
        time = micros(getattr(event, self._event.time))
        found = self._found(row, time)
        for stage in self._stages:
            if row is not None:
                row = stage(row, time, found)
        return row

    def _found(self, row: Row | None, time: int) -> Found:
        """What is online of several features, in one round trip: their keys seldom hang on what others tell. Where one
        does, its stage reads again."""
        if self._together is None:
            return {}
        keys: dict[str, Key] = {}
        for stage in self._first:
            if row is None:  # maybe for want of features: each stage reads by itself
                return {}
            if isinstance(stage, _Told):
                keys[stage.name], row = stage.key(row), row | stage.unknown
            else:
                row = stage(row, time, {})
        found = zip(keys.values(), self._together.read(list(keys.values())), strict=True)
        return dict(zip(keys, found, strict=True))


def _stage(node: Node, online: Mapping[str, Online]) -> Stage:
    match node:
        case Filter():
            condition = compile(node.condition, by_name)
            return lambda row, time, found: row if condition(row) else None
        case Project():
            values = _values(node)
            return lambda row, time, found: {name: value(row) for name, value in values.items()}
        case Enriched():
            values, (one, other) = _values(node), node.names
            nothing = dict.fromkeys(column.name for column in node.table.columns)
            return lambda row, time, found: {
                name: value({**row, one: row, other: nothing}) for name, value in values.items()
            }
        case Featured():
            if node.name in online:
                return _Told(node, online[node.name])
            unknown = _unknown(node)
            return lambda row, time, found: row | unknown
    raise UsageError(
        f"what {node.name or type(node).__name__.lower()} says is not known ahead",
        why="an event can be followed through features, conditions, selects and enrichments",
        fix="ask for a stream before it",
    )


def _values(node: Project | Enriched) -> dict[str, Callable[[Any], Any]]:
    return {name: compile(value, by_name) for name, value in node.values}


def _unknown(node: Featured) -> Row:
    return dict.fromkeys(column.name for column in node.features)


class _Told:
    """The stage of features that are online: the row with what they tell."""

    def __init__(self, node: Featured, online: Online) -> None:
        self.name, self.online, self.unknown = node.name, online, _unknown(node)
        self._keys = {name: compile(value, by_name) for name, value in node.keys}
        self._asked = [compile(value, by_name) for value in node.asked(0)]
        self._into = [plain.into(value.type) for value in node.asked(0)]
        self._known_by = None if node.once is None else compile(node.once, by_name)

    def key(self, row: Row) -> Key:
        return self.online.key({name: value(row) for name, value in self._keys.items()})

    def __call__(self, row: Row, time: int, found: Found) -> Row:
        key = self.key(row)
        read, sets = found.get(self.name, (None, ()))
        if read != key:
            sets = self.online.read(key)
        id = None if self._known_by is None else self._known_by(row)
        coming = Coming(time, id, plain.each(self._into, [value(row) for value in self._asked]))
        return row | self.unknown | self.online.tell(coming, sets)
