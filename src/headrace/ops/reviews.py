"""The review queue from the shell: rebuilt from the log, labelled and snoozed on the log; no service needs to run."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import Any

from headrace.base.clock import SystemClock, rfc3339
from headrace.base.errors import DataError, DeliveryFailed, NotFound
from headrace.log.arrivals import Arrivals
from headrace.log.broker import Broker
from headrace.log.codec import Encoded
from headrace.log.prompt import PromptProducer
from headrace.model.service import Service
from headrace.serve.live import KEEP, followed, read_rows
from headrace.serve.reviews import Review, Reviews


def queue(broker: Broker, service: Service) -> Reviews:
    """What waits now."""
    if service.alerts is None:
        raise NotFound(f"{service.name} has no reviews", why="it declares no alerts=", where=service.where)
    found = Reviews(service)

    def take(messages: list[Any]) -> None:
        for record in read_rows(service, messages):
            with suppress(DataError):  # a note that nobody can read puts nothing off
                found.take(*record)

    for names in followed(service):
        reader = Arrivals(broker, names, take, since=SystemClock().now() - KEEP)
        try:
            reader.catch_up()
        finally:
            reader.close()
    found.settle()
    return found


def due(broker: Broker, service: Service, *, snoozed: bool = False, most: int = 100) -> list[Review]:
    return queue(broker, service).due(SystemClock().now(), most=most, snoozed=snoozed)


def done(broker: Broker, service: Service, *, most: int = 100) -> list[Review]:
    return queue(broker, service).done(most=most)


def label(broker: Broker, service: Service, id: str, *, fraud: bool, by: str) -> None:
    """Writes what a person says it was; of a review that was labelled too, as a correction."""
    record = queue(broker, service).label(id, fraud=fraud, by=by, now=SystemClock().now())
    assert service.label is not None
    _write(broker, service.label.topic, record)


def snooze(broker: Broker, service: Service, id: str, *, until: datetime, by: str) -> None:
    record = queue(broker, service).snooze(id, until=rfc3339(until), by=by, now=SystemClock().now())
    _write(broker, service.notes.name, record)


def _write(broker: Broker, topic: str, record: Encoded) -> None:
    """Returns once the log has it."""
    producer, refused = PromptProducer(broker), list[str]()
    producer.send(topic, record, lost=refused.append)
    if producer.close() or refused:
        raise DeliveryFailed(f"it was not written to {topic}", why=", ".join(refused) or "the broker is away",
                             fix="`headrace doctor` looks at the broker")  # fmt: skip
