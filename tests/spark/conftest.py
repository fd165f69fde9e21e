"""One Spark for all tests that need it: starting a JVM costs seconds."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.base.settings import Settings, load
from headrace.spark.session import Spark, start


@pytest.fixture(scope="session")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A home of its own for this run; the user's cache, so that jars and kernels are made once."""
    home = tmp_path_factory.mktemp("home")
    return load({"home": str(home), "spark.driver_memory": "1g"}, root=home)


@pytest.fixture(scope="session")
def spark(settings: Settings) -> Iterator[Spark]:
    with start(settings, profile="test", app_name="tests") as running:
        yield running


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    return str(tmp_path / "checkpoint")
