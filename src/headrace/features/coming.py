"""A row that is not there yet, as features will see it: its key, time and id, and what they ask of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from headrace.base.clock import micros
from headrace.base.errors import UsageError
from headrace.expr import by_attribute, compile
from headrace.features import history
from headrace.model.declared import Read
from headrace.model.featured import Featured
from headrace.steps import plain


class Coming(NamedTuple):
    """What features see of it. `id`: None, unless they tell a row once."""

    key: dict[str, Any]
    time: int
    id: Any
    args: tuple[Any, ...]


def coming(node: Featured) -> Callable[[Any], Coming | None]:
    """From an event to what the features see of it; None: it is filtered on the way."""
    source, steps = history.way(node.of)
    if not isinstance(source, Read):
        raise UsageError(f"{node.name} is not of events as they come", why="its rows are made by a step before",
                         fix="ask for a key: .get(...)")  # fmt: skip
    conditions, read = history.composed(steps, by_attribute)
    time, kind = source.event.time, source.event.cls
    keys = {key: compile(value, read) for key, value in node.keys}
    asked = [compile(value, read) for value in node.asked(0)]
    into = [plain.into(value.type) for value in node.asked(0)]
    known_by = None if node.once is None else compile(node.once, read)

    def seen(event: Any) -> Coming | None:
        if not isinstance(event, kind):
            raise UsageError(f"{event!r} is no {kind.__name__}", why=f"{node.name} is told of those")
        if not all(condition(event) for condition in conditions):
            return None
        return Coming(
            {key: value(event) for key, value in keys.items()},
            micros(getattr(event, time)),
            None if known_by is None else known_by(event),
            plain.each(into, [value(event) for value in asked]),
        )

    return seen
