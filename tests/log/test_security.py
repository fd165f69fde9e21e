"""A Kafka of your own behind passwords and certificates, opened with nothing but headrace.toml."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from headrace.base.errors import BrokerRefused, BrokerUnreachable
from headrace.base.ids import random_id
from headrace.base.settings import Settings, load
from headrace.log import groups, topics
from headrace.log.broker import Broker
from headrace.log.consume import Consumer
from headrace.log.produce import Producer
from headrace.model.topic import Topic
from tests.log.paying import ids, payment_on, payments
from tests.log.secured import PASSWORD, USER, Secured, secured


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory, settings: Settings) -> Iterator[Secured]:
    if shutil.which("openssl") is None:
        pytest.skip("NOT TESTED: TLS and SASL, because there is no openssl on this machine to make certificates with")
    with secured(tmp_path_factory.mktemp("own"), settings) as broker:
        yield broker


def configured(own: Secured, door: str, **kafka: str) -> Broker:
    """The broker that a headrace.toml beside the certificates describes."""
    lines = [f'{name} = "{value}"' for name, value in (("bootstrap", own.at(door)), *kafka.items())]
    (own.home / "headrace.toml").write_text("\n".join(["[kafka]", *lines, ""]))
    (own.home / "password").write_text(PASSWORD)
    return Broker.of(load(root=own.home, env={}))


SCRAM = {"sasl_mechanism": "SCRAM-SHA-512", "username": USER, "password": "${file:password}"}
SETTINGS = {
    "scram": {"security": "SASL_PLAINTEXT", **SCRAM},
    "secure": {"security": "SASL_SSL", "ca_file": "ca.pem", **SCRAM},
    "mutual": {"security": "SSL", "ca_file": "ca.pem", "cert_file": "client.crt", "key_file": "client.key"},
}


@pytest.mark.parametrize("door", SETTINGS)
def test_everything_works_behind_it(own: Secured, door: str) -> None:
    broker = configured(own, door, **SETTINGS[door])
    name = f"t-{random_id()[:12]}"
    topics.ensure(broker, Topic(name=name, partitions=1))
    payment = payment_on(name)
    with Producer(broker, payment) as producer:
        producer.send_many(payments(payment, 5))
    with Consumer(broker, payment, group=name) as consumer:
        assert ids(islice(consumer, 3)) == ["p0", "p1", "p2"]
    assert [lag.records for lag in groups.lag(broker, name)] == [2]
    assert broker.reach() == (own.at(door),)


@pytest.mark.parametrize(
    ("door", "changed", "what", "fix"),
    [
        ("scram", {"password": "guess"}, f"does not let '{USER}' in", "kafka.password"),
        ("secure", {"username": "bob"}, "does not let 'bob' in", "kafka.username"),
        ("scram", {"sasl_mechanism": "PLAIN"}, f"does not let '{USER}' in", "kafka.sasl_mechanism"),
        ("secure", {"ca_file": "stranger.pem"}, "no secure connection", "kafka.ca_file"),
    ],
)
def test_what_it_refuses_is_told_at_once(
    own: Secured, door: str, changed: dict[str, str], what: str, fix: str, capfd: pytest.CaptureFixture[str]
) -> None:
    broker = configured(own, door, **(SETTINGS[door] | changed))
    for question in (broker.reach, lambda: topics.listing(broker), lambda: groups.listing(broker)):
        with pytest.raises(BrokerRefused, match=what) as refused:
            question()
        assert fix in refused.value.fix
        assert refused.value.exit_code == 3
        assert "guess" not in str(refused.value)
    assert capfd.readouterr().err == ""  # the client's own talk goes elsewhere


@pytest.mark.parametrize(("door", "security"), [("secure", "PLAINTEXT"), ("scram", "PLAINTEXT"), ("plain", "SSL")])
def test_a_door_of_another_kind_is_named_with_the_clients_guess(own: Secured, door: str, security: str) -> None:
    broker = configured(own, door, security=security, ca_file="ca.pem")
    with pytest.raises(BrokerUnreachable) as wrong:
        broker.reach(within="1 s")
    assert wrong.value.what == f"what listens at {own.at(door)} does not answer as a broker"
    assert f"asked with security {security}" in wrong.value.why
    assert "kafka.security" in wrong.value.fix


def test_a_client_without_its_certificate_is_not_let_in(own: Secured, tmp_path: Path) -> None:
    broker = configured(own, "mutual", security="SSL", ca_file="ca.pem")
    with pytest.raises((BrokerUnreachable, BrokerRefused)):
        broker.reach(within="1 s")
