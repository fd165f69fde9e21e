"""An event class on a topic of its own for each test, on the one real broker."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.base.ids import random_id
from headrace.log import topics
from headrace.log.broker import Broker
from headrace.model.topic import Topic
from tests.log.paying import Declare, payment_on


@pytest.fixture
def declare(broker: Broker) -> Declare:
    """`declare(partitions=6)` makes a topic nobody else uses and returns the event class that lives on it."""

    def declared(partitions: int = 1, **how: Any) -> Any:
        name = f"t-{random_id()[:12]}"
        topics.ensure(broker, Topic(name=name, partitions=partitions, compact=how.pop("compact", False)), **how)
        return payment_on(name)

    return declared
