"""The broker: its address and security, clients made from them, and its errors in our words."""

from __future__ import annotations

import logging
import re
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from headrace.base.duration import duration, show
from headrace.base.errors import (
    BadSetting,
    BrokerRefused,
    BrokerUnreachable,
    DeliveryFailed,
    LogError,
    RecordTooLarge,
    TopicMissing,
)
from headrace.base.settings import Settings

LOGGER = logging.getLogger("headrace.log")
LOGGER.addHandler(logging.NullHandler())  # the client's own talk goes to whoever configures logging, not to stderr

K = TypeVar("K")

PATIENCE = timedelta(seconds=10)
"""How long a question to the broker may take."""

_SILENT = (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT, KafkaError._RESOLVE)

_REFUSED = (KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED, KafkaError._SSL)
_FIRST_LOOK = 0.2  # seconds until the first time we ask what the client has heard; doubled each time

_SENT_ON = re.compile(r"(?:\w+://)?(?P<address>\S+:\d+)/\d+: (?P<trouble>.*)")
"""The client's complaint about a broker that another one named: only those have a number."""

_SETTLING = (
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
)
"""The cluster is still finding out who answers: ask again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """Where the log is. Holds no connection: each client made here is its caller's to close."""

    bootstrap: str
    security: str = "PLAINTEXT"
    sasl_mechanism: str = ""
    username: str = ""
    password: str = field(default="", repr=False)
    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""
    key_password: str = field(default="", repr=False)
    partitions: int = 4
    """Partitions of topics whose declaration names no number."""

    @classmethod
    def of(cls, settings: Settings, *, embedded: str = "") -> Broker:
        """Your own Kafka if settings name one, else the embedded one at the given address."""
        return cls(
            bootstrap=settings.text("kafka.bootstrap") or embedded,
            partitions=settings.number("kafka.partitions"),
            **{name: settings.text(f"kafka.{name}") for name in _SECURITY if name not in _FILES},
            **{name: str(settings.path(f"kafka.{name}")) for name in _FILES if settings.text(f"kafka.{name}")},
        )

    def config(self, extra: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The client's settings, those without a value left to its defaults."""
        secured = {option: getattr(self, name) for name, option in _SECURITY.items() if getattr(self, name)}
        return {"bootstrap.servers": self.bootstrap, **secured, **(extra or {})}

    def admin(self) -> AdminClient:
        """A client that has heard from the broker. One that learns of the leaders just while it asks them may miss
        them, and would look again only after three seconds."""
        return self._introduced(PATIENCE)[0]

    def catalogue(self, *, within: str | timedelta = PATIENCE) -> Any:
        """Every broker and topic there is."""
        return self._introduced(duration(within))[1]

    def ask(self, question: Callable[[AdminClient], Mapping[K, Any]], *, topic: str = "") -> dict[K, Any]:
        """Puts a question to the broker and waits for its answers."""
        admin = self.admin()  # kept until the answers are in: a client that is collected drops them
        deadline = time.monotonic() + PATIENCE.total_seconds()
        while True:
            try:
                return {what: answer.result() for what, answer in question(admin).items()}
            except KafkaException as broken:
                if broken.args[0].code() not in _SETTLING or time.monotonic() > deadline:
                    raise self.explain(broken, topic=topic) from None
                admin.poll(0.05)

    def producer(self, extra: Mapping[str, Any]) -> Producer:
        return self._client(Producer, extra)

    def consumer(self, extra: Mapping[str, Any]) -> Consumer:
        return self._client(Consumer, extra)

    def _client(self, kind: Any, extra: Mapping[str, Any]) -> Any:
        try:
            return kind(self.config(extra), logger=LOGGER)
        except KafkaException as refused:
            raise BadSetting(
                "the Kafka client refuses its settings",
                why=refused.args[0].str(),
                fix="`headrace config` shows each value with its origin",
            ) from None

    def reach(self, *, within: str | timedelta = PATIENCE) -> tuple[str, ...]:
        """The addresses the brokers advertise, each tried; raises if none answers or an advertised one is dead."""
        advertised = tuple(f"{one.host}:{one.port}" for one in self.catalogue(within=within).brokers.values())
        for address in advertised:
            if trouble := _dead(address):
                raise self._misled(address, trouble)
        return advertised

    def _introduced(self, wait: timedelta) -> tuple[AdminClient, Any]:
        """A client, and the broker's first answer to it; raises as soon as it is clear that none will come."""
        self._knock()
        heard: list[KafkaError] = []
        client = self._client(
            AdminClient,
            {
                "error_cb": heard.append,
                "socket.timeout.ms": PATIENCE // timedelta(milliseconds=1),
                "socket.connection.setup.timeout.ms": 3000,
            },
        )
        started, patience = time.monotonic(), _FIRST_LOOK
        while True:
            try:
                return client, client.list_topics(timeout=patience)
            except KafkaException as silent:
                client.poll(0.05)  # errors reach `heard` only here
                for error in heard:
                    if error.code() in _REFUSED:
                        raise self._refused(error) from None
                left = wait.total_seconds() - (time.monotonic() - started)
                if left <= 0:
                    told = [e.str() for e in (*heard, silent.args[0]) if e.code() != KafkaError._ALL_BROKERS_DOWN]
                    # It did answer, but too late for our question: since then the client asks only whom it was told of.
                    if sent_on := next(filter(None, map(_SENT_ON.match, told)), None):
                        raise self._misled(sent_on["address"], sent_on["trouble"]) from None
                    raise BrokerUnreachable(
                        f"what listens at {self.bootstrap} does not answer as a broker",
                        why=f"asked with security {self.security} it said nothing of use in {show(wait)}: {told[0]}; "
                        "it advertised no address, because it never answered",
                        fix="correct kafka.bootstrap or kafka.security (`headrace config`)",
                    ) from None
                patience = min(2 * patience, left)

    def _knock(self) -> None:
        """Fails at once where nothing listens; the client itself would go on trying until its patience ends."""
        troubles = [_dead(address.strip()) for address in self.bootstrap.split(",")]
        if all(troubles):
            raise self._unreachable("; ".join(troubles))

    def _misled(self, address: str, trouble: str) -> BrokerUnreachable:
        return BrokerUnreachable(
            f"the broker at {self.bootstrap} advertises {address}, which cannot be reached",
            why=f"clients are sent on from the first address to the advertised one: {trouble}",
            fix="set the broker's advertised.listeners to an address that this machine can reach",
        )

    def _unreachable(self, why: str) -> BrokerUnreachable:
        return BrokerUnreachable(
            f"no broker answers at {self.bootstrap}",
            why=f"{why}; it advertised no address, because it never answered",
            fix="start the embedded one with `headrace up`, or correct kafka.bootstrap (`headrace config`)",
        )

    def _refused(self, error: KafkaError) -> BrokerRefused:
        if error.code() == KafkaError._SSL:
            return BrokerRefused(
                f"no secure connection to the broker at {self.bootstrap}",
                why=error.str(),
                fix="correct kafka.ca_file, kafka.cert_file or kafka.key_file (`headrace config`)",
            )
        return BrokerRefused(
            f"the broker at {self.bootstrap} does not let {self.username!r} in",
            why=error.str(),
            fix="correct kafka.username, kafka.password or kafka.sasl_mechanism (`headrace config`)",
        )

    def explain(self, broken: KafkaException | KafkaError, *, topic: str = "") -> LogError:
        """A client's error in our words."""
        error: KafkaError = broken.args[0] if isinstance(broken, KafkaException) else broken
        code, text = error.code(), error.str()
        if code in _REFUSED:
            return self._refused(error)
        if code in _SILENT:
            try:
                self.reach(within="3 s")
            except (BrokerUnreachable, BrokerRefused) as lost:
                return lost
            return LogError(f"the broker at {self.bootstrap} did not answer in time", why=text, fix="try again")
        if code in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION):
            return TopicMissing(
                f"topic {topic!r} or its partition is gone", why=text, fix="`headrace topics` lists all"
            )
        if code == KafkaError.MSG_SIZE_TOO_LARGE:
            return too_large(topic, text)
        return LogError(f"the broker refused: {text}" if topic == "" else f"topic {topic!r}: {text}", why=error.name())

    def undelivered(self, error: KafkaError, topic: str, count: int) -> LogError:
        """Why records that were sent did not arrive."""
        if error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            return too_large(topic, error.str())
        plural = "record was" if count == 1 else "records were"
        return DeliveryFailed(
            f"{count:,} {plural} not written to {topic!r}",
            why=f"{error.name()}: {error.str()} (broker {self.bootstrap})",
            fix="they are in producer.undelivered; send them again when the broker is well",
        )


def too_large(topic: str, why: str) -> RecordTooLarge:
    return RecordTooLarge(
        f"a record is too large for topic {topic!r}",
        why=why,
        fix="keep large bodies elsewhere and send a reference, or raise max_bytes= here and max.message.bytes there",
    )


_SECURITY = {
    "security": "security.protocol",
    "sasl_mechanism": "sasl.mechanism",
    "username": "sasl.username",
    "password": "sasl.password",
    "ca_file": "ssl.ca.location",
    "cert_file": "ssl.certificate.location",
    "key_file": "ssl.key.location",
    "key_password": "ssl.key.password",
}


_FILES = ("ca_file", "cert_file", "key_file")


def _dead(address: str) -> str:
    """Why nothing answers at host:port; empty if something does."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=3).close()
    except ValueError:
        return f"{address!r} is not host:port"
    except OSError as refused:
        return str(refused)
    return ""
