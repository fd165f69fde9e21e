"""A table online: the row that Redis has of a key, as it was read from the log."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec.structs import asdict

from headrace.model.declared import ReadTable
from headrace.model.event import misread
from headrace.model.output import Output
from headrace.model.target import RedisKeys
from headrace.stores.redis_reader import Held, Key, RedisReader


class OnlineTable:
    """Reads the rows of a table by their key."""

    def __init__(self, table: ReadTable, output: Output, url: str) -> None:
        """`output`: the one that keeps its rows."""
        assert isinstance(output.target, RedisKeys)
        self.table, self.label = table, output.target.label
        self._key = output.target.key
        self._decode: Callable[[bytes], Any] = msgspec.json.Decoder(table.event.cls).decode
        self.reader = RedisReader(url, [(output.target, output.of.columns)])

    def key(self, key: Mapping[str, Any]) -> Key:
        """A key as rows are read by it."""
        return [key[name] for name in self._key]

    def read(self, key: Key) -> Held:
        (found,) = self.reader.read([key])
        return found

    def row(self, held: Held) -> dict[str, Any] | None:
        """The row out of what was read; None: there is none."""
        (json,) = held
        try:
            return None if json is None else asdict(self._decode(json))
        except msgspec.ValidationError as broken:  # it was written before a column was added
            raise misread(self.table.event, broken) from None

    def close(self) -> None:
        self.reader.close()
