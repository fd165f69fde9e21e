"""A home for the command `bank` on the tests' broker: a lake and a log of a test's own, and no Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.base.settings import Settings, load
from headrace.log import topics
from headrace.log.broker import Broker


@pytest.fixture
def desk(broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Settings]:
    """What the command finds where it is called. The bank's topics go when the test ends."""
    before = set(topics.widths(broker))
    monkeypatch.setenv("HEADRACE__HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HEADRACE__KAFKA__BOOTSTRAP", broker.bootstrap)
    yield load()
    for name in set(topics.widths(broker)) - before:
        topics.delete(broker, name)
