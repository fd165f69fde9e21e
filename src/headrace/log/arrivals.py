"""Arrivals: a thread that hands over records of some topics as they come, after what is already there."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from threading import Event, Thread
from typing import Any

from confluent_kafka import KafkaError, TopicPartition

from headrace.base.ids import random_id
from headrace.log import topics
from headrace.log.broker import LOGGER, Broker
from headrace.log.offsets import at_time, beginnings, ends

_LOOK = 0.2  # seconds of one wait for the first record of a batch; records end it at once
_BATCH = 500


class Arrivals:
    """Reads whole topics outside any group: everybody who waits for answers must see all of them."""

    def __init__(
        self, broker: Broker, names: list[str], take: Callable[[list[Any]], None], *, since: datetime | None = None
    ) -> None:
        """`take` gets batches in the thread of this reader, first those dated `since` (None: all there are)."""
        self._take = take
        self._places = [place for name in names for place in topics.places(name, topics.width(broker, name))]
        self._ends = ends(broker, self._places)
        first = beginnings(broker, self._places) if since is None else at_time(broker, self._places, since)
        self._behind = {place for place in self._places if first[place] < self._ends[place]}
        self._client = broker.consumer(
            {
                "group.id": f"headrace-arrivals-{random_id()}",  # the client wants a name; nothing is committed to it
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "fetch.queue.backoff.ms": 5,
                "reconnect.backoff.max.ms": 500,
            }
        )
        self._client.assign([TopicPartition(*place, first[place]) for place in self._places])
        self._open = True
        self.caught_up = Event()
        """Set once everything that was there at the start has been handed over."""
        self._thread = Thread(target=self._read, name="arrivals", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def close(self) -> None:
        self._open = False
        self._thread.join()
        self._client.close()

    def _read(self) -> None:
        while self._open:
            if not self._behind:
                self.caught_up.set()
            first = self._client.poll(_LOOK)
            if first is None:
                continue
            # `consume` alone would wait for a full batch; one record is reason enough to wake up.
            batch = [first, *self._client.consume(_BATCH, 0)]
            found = [message for message in batch if message.error() is None]
            if found:
                self._take(found)
            self._catch_up(batch)

    def _catch_up(self, batch: list[Any]) -> None:
        for message in batch:
            error, place = message.error(), (message.topic(), message.partition())
            if error is None:
                if message.offset() + 1 >= self._ends[place]:
                    self._behind.discard(place)
            elif error.code() == KafkaError._PARTITION_EOF:
                self._behind.discard(place)
            else:
                LOGGER.warning("reading %s: %s", message.topic(), error.str())  # the client goes on by itself
