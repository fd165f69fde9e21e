"""Tables: the latest value per key of a compacted topic, or of a database's changes."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from headrace.base.errors import BadStep
from headrace.base.where import here
from headrace.expr.types import Columns
from headrace.model.declared import ReadTable
from headrace.model.event import EventType

if TYPE_CHECKING:
    from headrace.model.app import App


@dataclass(frozen=True, slots=True, repr=False)
class Table:
    """A declared table: streams are enriched with it, and `hr.connect(app)` reads it: `c.table(users).get("u1")`."""

    app: App
    node: ReadTable
    label: str = ""

    def __repr__(self) -> str:
        return f"<table of {', '.join(column.name for column in self.columns)} by {', '.join(self.event.key)}>"

    @property
    def event(self) -> EventType:
        return self.node.event

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def columns(self) -> Columns:
        return self.node.columns

    @property
    def called(self) -> str:
        """The name of its rows in conditions (rule J6)."""
        return self.label or re.sub(r"\W", "_", self.name)

    def alias(self, name: str) -> Table:
        """Another name for its rows in conditions."""
        if not name.isidentifier():
            raise BadStep(f"{name!r} cannot name rows", fix="use letters, digits and _", where=here())
        return replace(self, label=name)
