"""What is known: the keys of tables that an event must name, followed on their topics from the beginning."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from headrace.base.clock import EPOCH
from headrace.base.errors import UnknownKey
from headrace.log.arrivals import Arrivals
from headrace.log.broker import Broker
from headrace.model.service import Service

_PATIENCE = timedelta(hours=1)
"""For reading back: nothing is answered before, and a bank may have many cards."""


class Known:
    """Keys alone, never rows: the last record of a key says whether it is there. While the broker is away what was
    known stays known."""

    def __init__(self, service: Service) -> None:
        self._ask = service.ask.name
        self._keys: dict[str, set[bytes]] = {one.table.event.topic: set() for one in service.known}
        self._columns = [(one.column, one.table.name, one.table.event.topic) for one in service.known]
        self._write = {
            one.table.event.topic: f"headrace send {one.table.event.topic} {one.table.event.key[0]}=... ..."
            for one in service.known
        }
        self._reader: Arrivals | None = None

    async def start(self, broker: Broker) -> None:
        """Returns once every key that is on the log is known."""
        if self._keys:
            self._reader = await asyncio.to_thread(Arrivals, broker, list(self._keys), self._take, since=EPOCH)
            await asyncio.to_thread(self._reader.catch_up, within=_PATIENCE)

    async def stop(self) -> None:
        if self._reader is not None:
            await asyncio.to_thread(self._reader.close)

    @property
    def alive(self) -> bool:
        return self._reader is None or self._reader.alive

    def told(self) -> list[str]:
        """A line for each topic. One without keys would refuse whoever names one, and is rarely meant so."""
        hints = {topic: f"; events that name one are refused: {write}" for topic, write in self._write.items()}
        return [
            f"{topic}: {len(keys):,} key{'s' * (len(keys) != 1)}{'' if keys else hints[topic]}"
            for topic, keys in self._keys.items()
        ]

    def check(self, event: Any) -> None:
        """Refuses an event that names what is in no table. Null names nothing."""
        for column, table, topic in self._columns:
            value = getattr(event, column)
            if value is not None and value.encode() not in self._keys[topic]:
                raise UnknownKey(
                    f"{self._ask}.{column} is not known",
                    why=f"{table} has no such key; nothing was written",
                    fix=f"send one that {table} has, or write it there first: {self._write[topic]}",
                )

    def _take(self, messages: list[Any]) -> None:
        """Called in the reader's thread: to add a key, or to remove one, is a single step that needs no lock."""
        for message in messages:
            key = message.key()
            if key is None:
                continue  # a mark
            keys = self._keys[message.topic()]
            if message.value() is None:
                keys.discard(key)
            else:
                keys.add(key)
