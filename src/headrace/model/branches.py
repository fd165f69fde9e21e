"""Branches: what a split made of a stream, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.model.stream import Stream


class Branches:
    """What `split` made: streams by name."""

    def __init__(self, streams: Mapping[str, Stream]) -> None:
        self._streams = dict(streams)

    def __getattr__(self, name: str) -> Stream:
        try:
            return self._streams[name]
        except KeyError:
            raise AttributeError(f"there is no branch {name!r}; there is {', '.join(self._streams)}") from None

    def __repr__(self) -> str:
        return f"<branches {', '.join(self._streams)}>"
