"""Tables: the latest value per key of a compacted topic, or of a database's changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.base.where import Where
from headrace.model.event import EventType

if TYPE_CHECKING:
    from headrace.model.app import App


@dataclass(frozen=True, slots=True)
class Table:
    """A declared table; `hr.connect(app)` reads it: `c.table(customers).get("u1")`."""

    app: App
    event: EventType
    name: str
    where: Where | None = None
