"""A keyed stream cut into windows, and what is said about each window."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from headrace.base.duration import show
from headrace.base.where import here
from headrace.model import declared
from headrace.model.aggregate import Aggregate, bind_all
from headrace.model.declaring import declaring
from headrace.model.naming import condition_of, refs
from headrace.model.stream import Stream
from headrace.model.window import RESERVED, Emit, Window


@dataclass(frozen=True, slots=True, repr=False)
class WindowedStream:
    """A keyed stream cut into windows, waiting to be told what to say about each."""

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
