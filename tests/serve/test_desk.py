"""The desk when the log takes nothing: what is kept for later, what is refused, and what may be asked again."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

import msgspec
import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from headrace.base.errors import Overloaded
from headrace.base.settings import Settings
from headrace.log.broker import Broker
from headrace.log.prompt import PromptProducer
from headrace.serve.desk import Desk
from tests.log.paying import until
from tests.serve.asking import give_out, made, on_log, payment, serving
from tests.stack.pausing import standing_still


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrow(Broker):
    """Its clients send no record above the least limit that there is."""

    def producer(self, extra: Mapping[str, Any]) -> Producer:
        return Broker.producer(self, {**extra, "message.max.bytes": 1_000})


def test_while_the_broker_stands_still_answers_go_on_and_events_are_written_later(
    broker: Broker, settings: Settings
) -> None:
    service, asked = made(broker, deadline="100 ms", cards=True), payment("z-1")
    give_out(broker, service, "c1")
    with serving(service, broker) as desk:
        until(lambda: desk.call("GET", "/health").status == 200)
        with standing_still(settings):
            told = desk.decide(asked).body
            assert (told["decision"], told["why"], told["recorded"]) == ("review", "not-recorded", False)
            until(lambda: desk.call("GET", "/health").status == 503)
            assert desk.decide(payment("z-2", card_id="nobody's")).code == "unknown-key"  # it knows what it knew
        again = until(lambda: (said := desk.decide(asked).body)["recorded"] and said)
        assert again == told | {"recorded": True}
        until(lambda: desk.call("GET", "/health").status == 200)
    assert [row["payment_id"] for row in on_log(broker, service.ask.topic)] == ["z-1"]


def test_an_event_that_found_no_room_takes_no_id(broker: Broker, settings: Settings) -> None:
    service = made(broker, deadline="50 ms")

    async def ask(desk: Desk, **other: Any) -> dict[str, Any]:
        return await desk.decide(msgspec.json.encode(payment("n-1", **other)))

    async def asked() -> dict[str, Any]:
        desk = Desk(service, broker)
        await desk.start()
        try:
            # given a broker that is away, and as many records as may wait for it
            with standing_still(settings):
                with suppress(Overloaded):
                    while True:
                        desk.producer.send(service.notes.name, (b"k", b"{}", [], 0))
                with pytest.raises(Overloaded):
                    await ask(desk)
            # when the caller tries again, with the time of then
            while True:
                try:
                    return await ask(desk, amount="13.00")
                except Overloaded:
                    await asyncio.sleep(0.05)
        finally:
            await desk.stop()

    # then it is another event than the one of which nothing was written
    assert asyncio.run(asked())["decision"] == "review"
    assert [row["amount"] for row in on_log(broker, service.ask.topic)] == ["13.00"]


def test_an_event_that_the_broker_refuses_is_written_when_it_is_asked_again(broker: Broker) -> None:
    service, asked = made(broker, deadline="100 ms", small="payments"), payment("l-1", country="X" * 500)
    with serving(service, broker) as desk:
        told = desk.decide(asked).body
        assert (told["why"], told["recorded"]) == ("not-recorded", False)
        assert desk.decide(asked).body == told  # refused once more
        assert on_log(broker, service.ask.topic) == []

        widen(broker, service.ask.topic)
        assert until(lambda: (said := desk.decide(asked).body)["recorded"] and said) == told | {"recorded": True}
    assert [row["payment_id"] for row in on_log(broker, service.ask.topic)] == ["l-1"]


def widen(broker: Broker, name: str) -> None:
    """From now on the topic takes large records too."""
    entry = ConfigEntry("max.message.bytes", "100000", incremental_operation=AlterConfigOpType.SET)
    topic = ConfigResource(ResourceType.TOPIC, name, incremental_configs=[entry])
    broker.ask(lambda admin: admin.incremental_alter_configs([topic]))


def test_an_event_that_the_client_itself_refuses_is_written_when_it_is_asked_again(broker: Broker) -> None:
    service = made(broker, deadline="100 ms", small="payments")
    asked = msgspec.json.encode(payment("e-1", country="X" * 2_000))

    async def ask() -> None:
        desk = Desk(service, broker)
        await desk.start()
        wide, narrow = desk.producer, PromptProducer(Narrow(**asdict(broker)))
        try:
            # given one that was told, and lost; asked again, it does not even leave
            assert not (await desk.decide(asked))["recorded"]
            desk.producer = narrow
            with pytest.raises(KafkaException):
                await desk.decide(asked)
            # when it is asked once more, then it is sent once more
            desk.producer = wide
            await asyncio.to_thread(widen, broker, service.ask.topic)
            async with asyncio.timeout(20):
                while not (await desk.decide(asked))["recorded"]:
                    await asyncio.sleep(0.05)
        finally:
            await asyncio.to_thread(narrow.close)
            await desk.stop()

    asyncio.run(ask())
    assert [row["payment_id"] for row in on_log(broker, service.ask.topic)] == ["e-1"]
