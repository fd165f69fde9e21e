"""One Spark for all tests that need it: starting a JVM costs seconds."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.base.settings import Settings
from headrace.spark.session import Spark, start


@pytest.fixture(scope="session")
def spark(settings: Settings) -> Iterator[Spark]:
    with start(settings, profile="test", app_name="tests") as running:
        yield running


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    return str(tmp_path / "checkpoint")
