"""The features of an app as a program asks for them: online from Redis, as of any time from the lake."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.base.errors import UsageError
from headrace.features import check, declared, offline, table
from headrace.features.check import Checked
from headrace.model.featured import Featured
from headrace.model.output import Output
from headrace.stores import lake_rows

if TYPE_CHECKING:
    import pyarrow as pa

    from headrace.features.ahead import Ahead
    from headrace.features.online import Online
    from headrace.features.telling import Vector


class FeatureReader:
    """`outputs`: where rows are kept. `redis`: where it is, asked for when the first vector is."""

    def __init__(self, node: Featured, outputs: Sequence[Output], *, redis: Callable[[], str], lake: Path) -> None:
        self._node = node
        self._outputs = outputs
        self._redis = redis
        self._lake = lake

    def __repr__(self) -> str:
        return f"<reader of features {self._node.name}>"

    def get(self, *, at: datetime | None = None, **key: Any) -> Vector:
        """What is known of a key now, or at a time that is not long ago: `get(card_id="c1")`. A key that nothing is
        known of has counts of 0, and null."""
        (vector,) = self.online.get([key], at)
        return vector

    def get_many(self, keys: Iterable[Mapping[str, Any]], *, at: datetime | None = None) -> list[Vector]:
        """Of each key, in one round trip: `get_many([{"card_id": "c1"}, {"card_id": "c2"}])`."""
        return self.online.get(list(keys), at)

    def tell(self, event: Any) -> Vector | None:
        """What the stream would tell of an event that is not there yet, or that it is about to tell: `tell(payment)`.
        None: the source leaves such events out."""
        row = self._ahead(event)
        return None if row is None else {column.name: row[column.name] for column in declared.told(self._node)}

    def as_of(self, rows: pa.Table | Iterable[Mapping[str, Any]], *, time: str, id: str | None = None) -> pa.Table:
        """The rows, each with the features of its key as they were at its time: nothing later is in them. `id`: rows
        that the stream itself had; each is told what it was told then, `last` being of the row before it."""
        given = table.table_of(rows)
        answers = self._told(table.asks_of(given, self._node, time, id))
        return table.with_features(given, declared.told(self._node), [answer.vector for answer in answers])

    def check(
        self, logged: str | pa.Table | Iterable[Mapping[str, Any]], *, time: str = "", id: str = "", source: str = ""
    ) -> Checked:
        """Computes vectors anew that were told, and compares them. `logged`: rows that have their features beside their
        key, time and id; a name is a table of the lake. `time`, `id`: what these columns are called, if not as in the
        event. `source`: a table of the lake that has the source's rows, if no app keeps them by themselves: it may be
        that of the logged rows, if they have the columns of the event beside what was told of it."""
        if isinstance(logged, str):
            given = lake_rows.read(self._lake, logged.removeprefix("lake."))
        else:
            given = table.table_of(logged)
        event = declared.event_of(self._node)
        time, id = time or (event.time if event else ""), id or getattr(offline.id_of(self._node), "name", "")
        if not id:
            raise UsageError(
                f"which row of {self._node.name} a logged one was cannot be told",
                why="its events have no id",
                fix='@hr.event(..., id="...")',
            )
        columns = [column.name for column in declared.told(self._node)]
        features = [name for name in columns if name in given.schema.names]
        if not features:
            raise UsageError(
                f"the rows have no feature of {self._node.name}",
                why=f"they have {', '.join(given.schema.names)}",
                fix=f"log the vectors: {', '.join(columns)}",
            )
        answers = self._told(table.asks_of(given, self._node, time, id), source.removeprefix("lake."))
        again = table.with_features(given, declared.told(self._node), [answer.vector for answer in answers])
        known = list(dict.fromkeys([*(name for name, _ in self._node.keys), time, id]))
        return check.compare(given, again, [answer.found for answer in answers], features, known)

    def close(self) -> None:
        if "online" in vars(self):
            self.online.close()

    def __enter__(self) -> FeatureReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @cached_property
    def online(self) -> Online:
        """What is kept in Redis."""
        from headrace.features.online import Online

        return Online(self._node, declared.kept(self._outputs, self._node), self._redis())

    @cached_property
    def _ahead(self) -> Ahead:
        from headrace.features.ahead import Ahead

        return Ahead(self._node, {self._node.name: self.online})

    def _told(self, asks: list[offline.Ask], source: str = "") -> list[offline.Told]:
        return offline.told(self._node, self._outputs, self._lake, asks, source)
