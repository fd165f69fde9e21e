"""A keyed stream cut into windows, and what is said about each window."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from headrace.base.duration import show
from headrace.base.errors import BadStep
from headrace.base.where import Where, here
from headrace.expr.types import BYTES, Columns, list_of
from headrace.model import declared
from headrace.model.aggregate import Aggregate, bind, bind_all
from headrace.model.declaring import declaring
from headrace.model.naming import condition_of, refs
from headrace.model.stream import Stream
from headrace.model.verbs import Verbs
from headrace.model.window import RESERVED, Emit, Window


@dataclass(frozen=True, slots=True, repr=False)
class WindowedStream(Verbs):
    """A keyed stream cut into windows, waiting to be told what to say about each."""

    KIND = "a stream in windows"
    OF_STREAMS = "say .agg(times=hr.count()) first"

    of: Stream
    window: Window
    lateness: timedelta
    emit: Emit

    def __repr__(self) -> str:
        return f"<{self.of!r} in windows: {self.window}, lateness {show(self.lateness)}>"

    @declaring('.agg(spent=hr.sum("amount"), times=hr.count())', why="each value is a column, and needs a name")
    def agg(self, *, having: Any = None, **values: Aggregate) -> Stream:
        """One result per key and window: `agg(spent=hr.sum("amount"), times=hr.count())`."""
        place = here()
        bound = bind_all(values, self.of.columns, RESERVED | {name for name, _ in self.of.key}, place)
        node = declared.Aggregated(
            of=self.of.node,
            keys=self.of.key,
            window=self.window,
            lateness=self.lateness,
            emit=self.emit,
            values=bound,
            where=place,
        )
        if having is not None:
            node = replace(node, having=condition_of(having, node.columns, place))
        return Stream(self.of.app, node, refs(tuple(name for name, _ in self.of.key), node.columns))

    @declaring('.top(10, by="amount")')
    def top(self, n: int, *, by: Any) -> Stream:
        """The n rows of the greatest values of `by`, a row for each `rank`, the greatest first; of equal ones the
        earlier. Rows where it is null have no rank. A correction tells all ranks anew."""
        place = here()
        if isinstance(n, bool) or not isinstance(n, int):
            raise BadStep(f"top({n!r}) is no count of rows", fix='.top(10, by="amount")', where=place)
        values = bind("rows", Aggregate("top", by, n=n, where=place), self.of.columns, place)
        ranked = self._beside_key(place)
        node = declared.Aggregated(
            of=self.of.node,
            keys=self.of.key,
            window=self.window,
            lateness=self.lateness,
            emit=self.emit,
            values=(replace(values, kind="top_rows", type=list_of(BYTES)),),
            ranked=ranked,
            where=place,
        )
        return Stream(self.of.app, node, refs(tuple(name for name, _ in self.of.key), node.columns))

    def _beside_key(self, place: Where | None) -> Columns:
        """The row's columns that results do not have as key."""
        keys = {name: str(value) for name, value in self.of.key}
        names = [column.name for column in self.of.columns]
        taken = [name for name in names if name in RESERVED | {"rank"} or keys.get(name, name) != name]
        taken += ["rank"] if "rank" in keys else []
        if taken:
            raise BadStep(f"{taken[0]!r} is taken", why="results have another column of that name",
                          fix=f'rename it first: .select("..., {taken[0]} as ...")', where=place)  # fmt: skip
        return tuple(column for column in self.of.columns if column.name not in keys)
