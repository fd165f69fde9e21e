"""The configuration page: its headrace.toml is one that Headrace reads, secrets by reference included."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headrace.base.settings import load
from headrace.log.broker import Broker
from tests.docs.page import ROOT

PAGE = ROOT / "docs" / "configuration.md"


def test_the_example_configures_a_secured_broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example = re.search(r"```toml\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert example is not None
    (tmp_path / "headrace.toml").write_text(example[1])
    monkeypatch.setenv("KAFKA_PASSWORD", "geheim")

    settings = load(root=tmp_path, env={})
    assert Broker.of(settings).config() == {
        "bootstrap.servers": "broker-1:9093,broker-2:9093",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "headrace",
        "sasl.password": "geheim",
        "ssl.ca.location": "/etc/ssl/kafka-ca.pem",
    }
    assert settings.apps == {"bank": "bank.app:bank"}
    assert "geheim" not in repr(Broker.of(settings))
