"""Arrivals: a thread that hands over records of some topics as they come, after what is already there."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from threading import Event, Thread
from typing import Any

from confluent_kafka import KafkaError, TopicPartition

from headrace.base.duration import duration, show
from headrace.base.errors import LogError
from headrace.base.ids import random_id
from headrace.log import topics
from headrace.log.broker import LOGGER, Broker
from headrace.log.offsets import at_time, ends

_LOOK = 0.2  # seconds of one wait for the first record of a batch; records end it at once
_BATCH = 500
_PATIENT_BYTES, _PATIENT_WAIT = 100_000, 200


class Arrivals:
    """Reads whole topics outside any group: everybody who waits for answers must see all of them."""

    def __init__(
        self,
        broker: Broker,
        names: list[str],
        take: Callable[[list[Any]], None],
        *,
        since: datetime,
        patient: bool = False,
    ) -> None:
        """`take` gets batches in the thread of this reader, first those dated `since`. A patient reader lets the broker
        collect: a few answers a second instead of one for each record, for what nobody waits for."""
        self._take = take
        self._places = [place for name in names for place in topics.places(name, topics.width(broker, name))]
        self._ends = ends(broker, self._places)
        first = at_time(broker, self._places, since)
        self._behind = {place for place in self._places if first[place] < self._ends[place]}
        self._client = broker.consumer(
            {
                "group.id": f"headrace-arrivals-{random_id()}",  # the client wants a name; nothing is committed to it
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "fetch.queue.backoff.ms": 5,
                "fetch.min.bytes": _PATIENT_BYTES if patient else 1,
                "fetch.wait.max.ms": _PATIENT_WAIT if patient else 500,
                "reconnect.backoff.max.ms": 500,
            }
        )
        self._client.assign([TopicPartition(*place, first[place]) for place in self._places])
        self._open = True
        self._caught_up = Event()
        self._failure: Exception | None = None
        self._thread = Thread(target=self._read, name="arrivals", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def catch_up(self, *, within: str | timedelta = "1 min") -> None:
        """Returns once everything that was there at the start has been handed over."""
        if not self._caught_up.wait(duration(within).total_seconds()):
            raise LogError("reading what is there took too long", why=f"not done in {show(duration(within))}")
        if self._failure is not None:
            raise self._failure

    def close(self) -> None:
        self._open = False
        self._thread.join()
        self._caught_up.set()  # whoever still waits for it is not left waiting
        self._client.close()

    def _read(self) -> None:
        try:
            while self._open:
                self._read_once()
        except Exception as failed:  # of whoever takes the records: a fault, which must not look like silence
            LOGGER.exception("reading stopped")
            self._failure = failed
            self._caught_up.set()

    def _read_once(self) -> None:
        if not self._behind:
            self._caught_up.set()
        first = self._client.poll(_LOOK)
        if first is None:
            return
        # `consume` alone would wait for a full batch; one record is reason enough to wake up.
        batch = [first, *self._client.consume(_BATCH, 0)]
        found = [message for message in batch if message.error() is None]
        if found:
            self._take(found)
        self._pass(batch)

    def _pass(self, batch: list[Any]) -> None:
        for message in batch:
            error, place = message.error(), (message.topic(), message.partition())
            if error is None:
                if message.offset() + 1 >= self._ends[place]:
                    self._behind.discard(place)
            elif error.code() == KafkaError._PARTITION_EOF:
                self._behind.discard(place)
            else:
                LOGGER.warning("reading %s: %s", message.topic(), error.str())  # the client goes on by itself
