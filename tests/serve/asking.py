"""A service of the tests: payments that are asked about, somebody who decides, and callers over real HTTP."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

import headrace as hr
from headrace.base.clock import rfc3339
from headrace.base.ids import random_id
from headrace.log import topics
from headrace.log.arrivals import Arrivals
from headrace.log.broker import Broker
from headrace.log.produce import Producer
from headrace.log.prompt import PromptProducer
from headrace.log.read import read
from headrace.model.service import Service
from headrace.serve.server import Server

KEY = "a key that is only for tests"
DEFAULT = {"decision": "review", "reasons": ["no answer in time"]}


def declared(prefix: str, *, cards: bool = False, **how: Any) -> hr.App:
    """An app with a service on topics of its own. `cards`: it knows them, and no others may pay."""

    @hr.event(topic=f"{prefix}.payments", key="card_id", time="at", id="payment_id")
    class Payment:
        payment_id: str
        card_id: str
        amount: hr.Money
        country: str
        lat: float
        pin_ok: bool
        at: datetime

    @hr.event(topic=f"{prefix}.labels", key="payment_id", time="at", id="payment_id")
    class Label:
        payment_id: str
        card_id: str
        amount: hr.Money
        fraud: int
        by: str
        at: datetime

    @hr.event(topic=f"{prefix}.cards", key="card_id", time="at")
    class Card:
        card_id: str
        at: datetime

    app = hr.App("desk")
    app.service(
        "decide",
        **{
            "ask": Payment,
            "answer": app.topic(f"{prefix}.raw", partitions=2),
            "default": DEFAULT,
            "deadline": "5 s",  # far: a busy machine is no failure of what a test is about
            "checks": {"amount > 0": "an amount is above zero", "amount <= 100000": "an amount is at most 100,000"},
            "alerts": app.topic(f"{prefix}.alerts", partitions=1),
            "label": Label,
            "batch": app.topic(f"{prefix}.batch", partitions=1),
            "repeats": app.topic(f"{prefix}.twice", partitions=1),
            "known": {"card_id": app.table(Card)} if cards else {},
        }
        | how,
    )
    return app


def made(broker: Broker, *, small: str = "", **how: Any) -> Service:
    """The service of such an app, with its topics. `small`: one of them takes no records above 400 bytes."""
    prefix = f"t-{random_id()[:12]}"
    app = declared(prefix, **how)
    topics.ensure(
        broker,
        *(replace(topic, largest=400 if topic.name == f"{prefix}.{small}" else None) for topic in app.topics),
    )
    return app.services[0]


def payment(id: str, **other: Any) -> dict[str, Any]:
    """A payment as a terminal sends it, dated now."""
    return {
        "payment_id": id,
        "card_id": "c1",
        "amount": "12.50",
        "country": "DE",
        "lat": 52.5200066123456,
        "pin_ok": True,
        "at": rfc3339(datetime.now(UTC)),
    } | other


class Answer(msgspec.Struct, frozen=True):
    """What came over HTTP."""

    status: int
    body: Any
    headers: dict[str, str]

    @property
    def code(self) -> str:
        return str(self.body["error"]["code"])


class Caller:
    """Speaks HTTP to a server: one connection a call, as the plainest client would."""

    def __init__(self, address: str) -> None:
        self.at = address.removeprefix("http://")

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        sent = {"X-Api-Key": KEY, "Content-Type": "application/json"} | {
            k.replace("_", "-"): v for k, v in headers.items()
        }
        raw = body if isinstance(body, bytes | None) else msgspec.json.encode(body)
        connection = http.client.HTTPConnection(self.at, timeout=30)
        try:
            connection.request(method, path, raw, {name: value for name, value in sent.items() if value})
            answer = connection.getresponse()
            text = answer.read()
            is_json = answer.headers.get_content_type() == "application/json"
            told = msgspec.json.decode(text) if is_json else text.decode()
            return Answer(answer.status, told, dict(answer.headers))
        finally:
            connection.close()

    def decide(self, body: Any, path: str = "/decide", **headers: str) -> Answer:
        return self.call("POST", path, body, **headers)

    def metric(self, line: str) -> float:
        """The value of a line of /metrics; 0 where there is none yet."""
        for told in self.call("GET", "/metrics").body.splitlines():
            if told.startswith(f"{line} "):
                return float(told.rsplit(" ", 1)[1])
        return 0.0


@contextmanager
def serving(service: Service, broker: Broker, **how: Any) -> Iterator[Caller]:
    """A server in a thread; it has stopped, and freed its port, when the block ends."""
    server, ready, left = Server(service, broker, key=KEY, **how), threading.Event(), []
    thread = threading.Thread(target=lambda: left.append(server.run(ready.set)))
    thread.start()
    try:
        assert ready.wait(30)
        yield Caller(server.address)
    finally:
        server.stop()
        thread.join(30)
    assert left == [0]


@contextmanager
def deciding(service: Service, broker: Broker, say: Callable[[dict[str, Any]], list[dict[str, Any]]]) -> Iterator[None]:
    """Somebody who reads payments and writes what `say` makes of each: no row, one, or one per twin."""
    producer = PromptProducer(broker)

    def take(messages: list[Any]) -> None:
        for message in messages:
            row = msgspec.json.decode(message.value())
            for said in say(row):
                value = msgspec.json.encode({"payment_id": row["payment_id"], **said})
                producer.send(service.answer.name, (row["payment_id"].encode(), value, [], 0))

    reader = Arrivals(broker, [service.ask.topic], take, since=datetime.now(UTC) + timedelta(days=1))
    try:
        reader.catch_up()
        yield
    finally:
        reader.close()
        producer.close()


def decision(row: dict[str, Any]) -> list[dict[str, Any]]:
    """Large amounts are declined, middle ones reviewed."""
    amount = float(row["amount"])
    said = "decline" if amount >= 1000 else "review" if amount >= 500 else "allow"
    return [
        {
            "decision": said,
            "reasons": [] if said == "allow" else [f"amount {amount:g}"],
            "score": 0.5,
            "seen_card": "p/0@1",
        }
    ]


def give_out(broker: Broker, service: Service, *cards: str) -> None:
    cls = service.known[0].table.event.cls
    with Producer(broker, cls) as producer:
        producer.send_many(cls(card, datetime.now(UTC)) for card in cards)


def take_back(broker: Broker, service: Service, card: str) -> None:
    with Producer(broker, service.known[0].table.event.cls) as producer:
        producer.send_tombstone(card)


def write(broker: Broker, topic: str, *rows: dict[str, Any]) -> None:
    """Rows on a topic, as a flow would write them."""
    write_bytes(broker, topic, *map(msgspec.json.encode, rows))


def write_bytes(broker: Broker, topic: str, *values: bytes) -> None:
    """Whatever it is, on a topic."""
    producer = PromptProducer(broker)
    for value in values:
        producer.send(topic, (b"key", value, [], 0))
    assert producer.close() == 0


def on_log(broker: Broker, topic: str) -> list[dict[str, Any]]:
    return [msgspec.json.decode(message.value()) for message in read(broker, topic)]
