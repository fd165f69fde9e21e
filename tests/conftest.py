"""One embedded stack for a whole run, started part by part when a test first asks; every test has its own topic.

`make test` runs three processes side by side, each with a stack of its own; the tests of a file stay together.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from headrace.base.ids import random_id
from headrace.base.settings import Settings, load
from headrace.log.broker import Broker
from headrace.spark.profile import QUICK_JVM
from headrace.stack import stack as embedded
from headrace.stack.stack import Addresses

if TYPE_CHECKING:
    from headrace.spark.session import Spark
    from tests.spark.keeping import Kept

os.environ["JAVA_TOOL_OPTIONS"] = " ".join(QUICK_JVM)  # of drivers; the parts of the stack have their own


@pytest.fixture(scope="session")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """A home of its own for this run; the user's cache, so that jars and kernels are fetched and compiled once."""
    home = tmp_path_factory.mktemp("home")
    yield load({"home": str(home), "spark.driver_memory": "1g"}, root=home, env={})
    embedded.down(home)
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="session")
def broker(settings: Settings) -> Broker:
    """The one Kafka of this run."""
    addresses = embedded.up(settings.home, settings.cache, parts=("kafka",), foreground=True)
    return Broker.of(settings, embedded=addresses.kafka)


@pytest.fixture(scope="session")
def stack(settings: Settings, broker: Broker) -> Addresses:
    """Kafka, PostgreSQL and Redis."""
    return embedded.up(settings.home, settings.cache, foreground=True)


@pytest.fixture(scope="session")
def spark(settings: Settings) -> Iterator[Spark]:
    """The one Spark of this process: starting a JVM costs seconds."""
    from headrace.spark.session import start

    with start(settings, profile="test", app_name="tests") as running:
        yield running


@pytest.fixture(scope="session")
def kept(spark: Spark, broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Kept:
    """A flow that ran and stopped, for tests that look at its checkpoint or damage a copy, and do not run it."""
    from tests.spark.keeping import keep

    return keep(spark, broker, f"t-{random_id()[:12]}", tmp_path_factory.mktemp("kept"))


@pytest.fixture
def topic() -> str:
    """A name that no other test uses; the topic itself is the test's to make."""
    return f"t-{random_id()[:12]}"
