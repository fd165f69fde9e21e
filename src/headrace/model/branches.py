"""Branches: what a split made of a stream, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headrace.model.verbs import missing

if TYPE_CHECKING:
    from headrace.model.stream import Stream


class Branches:
    """What `split` made: streams by name."""

    def __init__(self, streams: Mapping[str, Stream]) -> None:
        self._streams = dict(streams)

    def __getattr__(self, name: str) -> Stream:
        if name.startswith("_"):  # copy asks for _streams before there are any
            raise AttributeError(name)
        if name not in self._streams:
            raise missing("the split", name, tuple(self._streams))
        return self._streams[name]

    def __dir__(self) -> list[str]:
        return list(self._streams)

    def __repr__(self) -> str:
        return f"<branches {', '.join(self._streams)}>"
