"""Telling features out of rows that are remembered: the code that tells them in a stream, at any moment."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from headrace.base.errors import UsageError
from headrace.features.declared import told
from headrace.model.featured import Featured
from headrace.steps import features, plain
from headrace.steps.known import Known
from headrace.steps.row import Row
from headrace.steps.spec import step_of

Vector = dict[str, Any]
"""The features of a key, by name."""


class Teller:
    """Of one set of features."""

    def __init__(self, node: Featured) -> None:
        self._spec: features.Spec = replace(step_of(node)[1], once="", seen=False, most=sys.maxsize)
        self._names = [column.name for column in told(node)]
        self._back = [plain.back(column.type) for column in told(node)]

    def at(self, moment: int, rows: Sequence[list[Known]]) -> Vector:
        """What is known at a moment in micros. `rows`: those of each stream by time, one that came twice only once."""
        return self._named(features.known_at(self._spec, features.from_rows(self._spec, rows), moment))

    def of(self, time: int, args: tuple[Any, ...], rows: Sequence[list[Known]]) -> Vector:
        """What a row of that time would be told that comes now. It is put among the rows."""
        row = Row(time, (time, 0, 0, 0, ""), args)
        return self._named(features.step(self._spec, features.from_rows(self._spec, rows), row, None)[1])

    def _named(self, values: Sequence[Any]) -> Vector:
        return dict(zip(self._names, plain.each(self._back, values), strict=True))


def key_of(node: Featured, given: dict[str, Any], order: Sequence[str]) -> list[Any]:
    """The values of a key that somebody asks for, in this order of its columns."""
    if given.keys() != set(order):
        raise UsageError(
            f"{node.name} is asked for by {', '.join(given) or 'nothing'}",
            why=f"its key is {', '.join(order)}",
            fix=f".get({', '.join(f'{name}=...' for name in order)})",
        )
    return [given[name] for name in order]
