"""Tables: the latest value per key of a compacted topic, or of a database's changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.model.changing import Versions
from headrace.model.event import EventType
from headrace.model.naming import refs
from headrace.model.view import View

if TYPE_CHECKING:
    from headrace.model.app import App
    from headrace.model.declared import ReadTable


@dataclass(frozen=True, slots=True, repr=False)
class Table(View):
    """A declared table: streams are enriched with it, views are made of it, and `hr.connect(app)` reads it:
    `c.table(users).get("u1")`."""

    node: Versions

    @classmethod
    def of(cls, app: App, read: ReadTable) -> Table:
        # Not "orders": that is the step that reads the topic.
        node = Versions(of=read, name=f"{read.name}.versions", where=read.where)
        return cls(app, node, refs(read.event.key, read.columns))

    @property
    def read(self) -> ReadTable:
        return self.node.of

    @property
    def event(self) -> EventType:
        return self.read.event

    @property
    def name(self) -> str:
        return self.read.name
