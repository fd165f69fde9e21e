"""A Python function of the user's on rows (rule B2): called as often as it may be, and what it gives is checked."""

from __future__ import annotations

import traceback
from abc import ABC, abstractmethod
from collections import namedtuple
from collections.abc import Callable, Sequence
from typing import Any

from headrace.base.errors import WrongType
from headrace.model.event import EventType

Values = tuple[Any, ...]


class _Called(ABC):
    """Calls it with a row that has the columns as attributes."""

    def __init__(self, call: Callable[[Any], Any], columns: Sequence[str], *, retries: int) -> None:
        self._call = call
        # A column may be named like a Python keyword, which no attribute can be: then it is reached by place.
        self._seen = namedtuple("Row", columns, rename=True)  # type: ignore[misc]
        self._retries = retries

    def __call__(self, values: Sequence[Any]) -> list[Values]:
        """Raises what the last try raised."""
        for left in range(self._retries, -1, -1):
            try:
                return self._made(self._call(self._seen(*values)))
            except Exception:
                if left == 0:
                    raise
        raise AssertionError("retries are never negative")

    @abstractmethod
    def _made(self, found: Any) -> list[Values]: ...


class Condition(_Called):
    """Tests a row; gives one row, of nothing but True, or none."""

    def _made(self, found: Any) -> list[Values]:
        if found is not None and not isinstance(found, bool):
            raise WrongType(f"the function gave {found!r}", why="a condition is True or False", fix="return a bool")
        return [(True,)] if found else []


class Function(_Called):
    """Makes rows of a row; gives their values."""

    def __init__(
        self, call: Callable[[Any], Any], columns: Sequence[str], result: EventType, *, many: bool, retries: int
    ) -> None:
        super().__init__(call, columns, retries=retries)
        self._result = result
        self._many = many

    def _made(self, found: Any) -> list[Values]:
        return [self._values(row) for row in (found if self._many else [found])]

    def _values(self, row: Any) -> tuple[Any, ...]:
        wanted = self._result
        if getattr(type(row), "__headrace__", None) != wanted:
            raise WrongType(
                f"the function gave {row!r}",
                why=f"its rows are declared to be {wanted.name}",
                fix=f"return {wanted.name}(...); to leave rows out, filter, or use flat_map and give none",
            )
        return tuple([getattr(row, column.name) for column in wanted.columns])


def trace(broken: Exception) -> str:
    """The user's part of a traceback: our own frames, which called the function, say nothing."""
    frames = broken.__traceback__
    while frames is not None and frames.tb_frame.f_globals.get("__name__", "").startswith("headrace."):
        frames = frames.tb_next
    return "".join(traceback.format_exception(type(broken), broken, frames)).rstrip()
