"""What a stream would say of an event that comes now: its own steps, run over what is known online.

What cannot be known here is null: features that are not read online, and what tables say that are not.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from headrace.base.clock import micros
from headrace.base.errors import UsageError
from headrace.expr import by_name, compile
from headrace.features.declared import check_alike
from headrace.features.online import Coming, Online
from headrace.features.online_table import OnlineTable
from headrace.model.declared import Enriched, Filter, Node, Project, Read
from headrace.model.featured import Featured
from headrace.steps import plain
from headrace.stores.redis_reader import Held, Key, Together

Row = dict[str, Any]
Found = Mapping[Any, tuple[Key, Held]]
"""What is online, by the stage that asks for it, and of which key."""
Stage = Callable[[Row, int, Found], Row | None]
"""From a row and its time to what a step makes of it; None: it is filtered."""


class Ahead:
    """Called with an event, it gives the row that the stream would; None: the stream leaves such events out."""

    def __init__(self, stream: Node, online: Mapping[str, Online], tables: Iterable[OnlineTable] = ()) -> None:
        """`online`: features that are read, by name. `tables`: those that are read; others' rows are null."""
        self._stages: list[Stage] = []
        by_topic = {one.table.event.topic: one for one in tables}  # names are each app's own
        node = stream
        while not isinstance(node, Read):
            self._stages.append(_stage(node, online, by_topic))
            node = node.inputs[0]
        self._stages.reverse()
        self._event = node.event
        asking = [place for place, stage in enumerate(self._stages) if isinstance(stage, _Asking)]
        self._first = self._stages[: max(asking, default=-1) + 1]
        several = [stage.online.reader for stage in self._first if isinstance(stage, _Asking)]
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
        """What is online for several stages, in one round trip: their keys seldom hang on what others tell. Where one
        does, its stage reads again."""
        if self._together is None:
            return {}
        keys: dict[_Asking, Key] = {}
        for stage in self._first:
            if row is None:  # maybe for want of what is online: each stage reads by itself
                return {}
            if isinstance(stage, _Asking):
                keys[stage], row = stage.key(row), stage.unknown(row)
            else:
                row = stage(row, time, {})
        found = zip(keys.values(), self._together.read(list(keys.values())), strict=True)
        return dict(zip(keys, found, strict=True))


def _stage(node: Node, online: Mapping[str, Online], tables: Mapping[str, OnlineTable]) -> Stage:
    match node:
        case Filter():
            condition = compile(node.condition, by_name)
            return lambda row, time, found: row if condition(row) else None
        case Project():
            values = _values(node)
            return lambda row, time, found: {name: value(row) for name, value in values.items()}
        case Enriched() if node.table.event.topic in tables:
            return _Enriching(node, tables[node.table.event.topic])
        case Featured() if node.name in online:
            return _Told(node, online[node.name])
        case Enriched() | Featured():
            unknown = _unknown(node)
            return lambda row, time, found: unknown(row)
    raise UsageError(
        f"what {node.name or type(node).__name__.lower()} says is not known ahead",
        why="an event can be followed through features, conditions, selects and enrichments",
        fix="ask for a stream before it",
    )


def _values(node: Project | Enriched) -> dict[str, Callable[[Any], Any]]:
    return {name: compile(value, by_name) for name, value in node.values}


def _taking(node: Enriched) -> Callable[[Row, Row], Row]:
    """From a row and the table's to what comes out."""
    values, (one, other) = _values(node), node.names
    return lambda row, there: {name: value({**row, one: row, other: there}) for name, value in values.items()}


def _unknown(node: Featured | Enriched) -> Callable[[Row], Row]:
    """From a row to what comes out if nothing is known of it."""
    if isinstance(node, Featured):
        untold = dict.fromkeys(column.name for column in node.features)
        return lambda row: row | untold
    take, nothing = _taking(node), dict.fromkeys(column.name for column in node.table.columns)
    return lambda row: take(row, nothing)


class _Asking(ABC):
    """A stage that asks for what is online of a key, which the row has. `unknown`: the row without it."""

    def __init__(
        self, node: Featured | Enriched, online: Online | OnlineTable, keys: Iterable[tuple[str, Any]]
    ) -> None:
        self.online, self.unknown = online, _unknown(node)
        self._keys = {name: compile(value, by_name) for name, value in keys}

    def key(self, row: Row) -> Key:
        return self.online.key({name: value(row) for name, value in self._keys.items()})

    def held(self, row: Row, found: Found) -> Held:
        """What is there of the row's key: found already, unless it is another than was thought then."""
        key = self.key(row)
        read, held = found.get(self, (None, ()))
        return held if read == key else self.online.read(key)

    @abstractmethod
    def __call__(self, row: Row, time: int, found: Found) -> Row: ...


class _Told(_Asking):
    """The stage of features that are online: the row with what they tell."""

    def __init__(self, node: Featured, online: Online) -> None:
        super().__init__(node, online, node.keys)
        self._tell = online.tell
        self._asked = [compile(value, by_name) for value in node.asked(0)]
        self._into = [plain.into(value.type) for value in node.asked(0)]
        self._known_by = None if node.once is None else compile(node.once, by_name)

    def __call__(self, row: Row, time: int, found: Found) -> Row:
        id = None if self._known_by is None else self._known_by(row)
        coming = Coming(time, id, plain.each(self._into, [value(row) for value in self._asked]))
        return self.unknown(row) | self._tell(coming, self.held(row, found))


class _Enriching(_Asking):
    """The stage of a table that is online: the row with what it takes from the table's, of which the last is known."""

    def __init__(self, node: Enriched, online: OnlineTable) -> None:
        check_alike(online.label, online.table, node.table)
        super().__init__(node, online, zip(node.table.event.key, node.on, strict=True))
        self._row, self._take = online.row, _taking(node)
        self._version = node.table.event.time if node.as_of else ""

    def __call__(self, row: Row, time: int, found: Found) -> Row:
        there = None if None in self.key(row) else self._row(self.held(row, found))  # null equals nothing
        if there is None or (self._version and micros(there[self._version]) > time):  # the one before it is not known
            return self.unknown(row)
        return self._take(row, there)
