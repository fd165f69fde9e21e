"""Rows as a test sees them: columns as attributes, equal to dicts, printed as a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from difflib import get_close_matches
from typing import Any

from headrace.base.clock import rfc3339
from headrace.base.errors import UnknownColumn, UsageError
from headrace.base.where import here

_MIDNIGHT = "T00:00:00.000000Z"


class Row:
    """One row. `row.amount` and `row["amount"]` are the same; it equals a dict of all its columns.

    >>> row = Row(("card", "times"), ("c1", 2))
    >>> row.times, row == {"card": "c1", "times": 2}
    (2, True)
    """

    __slots__ = ("_columns", "_values")

    def __init__(self, columns: Sequence[str], values: Sequence[Any]) -> None:
        self._columns = tuple(columns)
        self._values = tuple(values)

    def __getattr__(self, name: str) -> Any:
        if name not in self._columns:
            raise AttributeError(str(_unknown(name, self._columns)))  # hasattr and pytest look for this one
        return self[name]

    def __getitem__(self, name: str) -> Any:
        if name not in self._columns:
            raise _unknown(name, self._columns)
        return self._values[self._columns.index(name)]

    def as_dict(self) -> dict[str, Any]:
        return dict(zip(self._columns, self._values, strict=True))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Row):
            return self.as_dict() == other.as_dict()
        return self.as_dict() == other if isinstance(other, Mapping) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._values)

    def __repr__(self) -> str:
        return f"Row({', '.join(f'{n}={shown(v)}' for n, v in zip(self._columns, self._values, strict=True))})"


class Rows(list[Row]):
    """A list of rows that prints as a table. `note` is said of an empty one: why there may be nothing."""

    def __init__(self, columns: Sequence[str], rows: Iterable[Sequence[Any]] = (), note: str = "") -> None:
        super().__init__(Row(columns, values) for values in rows)
        self.columns = tuple(columns)
        self._note = note

    def only(self, columns: str) -> Rows:
        """The same rows with these columns, in this order: `rows.only("card, spent")`."""
        if not isinstance(columns, str):
            raise UsageError(
                f"{columns!r} is no list of columns", why="it is one text", fix='"card, spent"', where=here()
            )
        names = [name.strip() for name in columns.split(",")]
        for name in names:
            if name not in self.columns:
                raise _unknown(name, self.columns)
        return Rows(names, ([row[name] for name in names] for row in self), self._note)

    def __repr__(self) -> str:
        if not self:
            return f"no rows{f' ({self._note})' if self._note else ''}"
        return table(self.columns, [[shown(row[name]) for name in self.columns] for row in self])

    __str__ = __repr__


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Text in columns."""
    widths = [max(len(column), *(len(row[n]) for row in rows)) for n, column in enumerate(columns)]
    lines = [" | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) for row in (columns, *rows)]
    lines.insert(1, "-+-".join("-" * width for width in widths))
    return "\n".join(line.rstrip() for line in lines)


def shown(value: Any) -> str:
    """A value as a person reads it: times without what is zero, floats with the digits that say something."""
    if isinstance(value, datetime):
        text = rfc3339(value).removesuffix(_MIDNIGHT)
        return text.removesuffix("Z").removesuffix(".000000").removesuffix(":00").replace("T", " ")
    if isinstance(value, float):
        text = f"{value:.6g}"
        return f"{text}.0" if text.lstrip("-").isdigit() else text  # 2.0 is no int
    if isinstance(value, list):
        return f"[{', '.join(map(shown, value))}]"
    return "" if value is None else str(value)


def _unknown(name: str, columns: Sequence[str]) -> UnknownColumn:
    near = get_close_matches(name, columns, 1)
    return UnknownColumn(
        f"there is no column {name!r}",
        why=f"the rows have {', '.join(columns)}",
        fix=f"did you mean {near[0]!r}?" if near else "",
        where=here(),
    )
