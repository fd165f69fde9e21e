"""A stack that tests may stop, kill and break: its home is not the one that other rooms share."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.base.settings import Settings
from headrace.stack import stack
from headrace.stack.stack import Addresses


@pytest.fixture(scope="session")
def cache(settings: Settings) -> Path:
    return settings.cache


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The home of Kafka, PostgreSQL and Redis for this room; whatever a test does to them, `running` heals."""
    home = tmp_path_factory.mktemp("stack")
    yield home
    stack.down(home)
    shutil.rmtree(home)


@pytest.fixture
def running(home: Path, cache: Path) -> Addresses:
    """All three parts, up."""
    return stack.up(home, cache)


@pytest.fixture(scope="session")
def ready_made(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Path:
    """A home whose PostgreSQL has been made and stopped: a copy of it costs a tenth of making one."""
    home = tmp_path_factory.mktemp("made")
    stack.up(home, cache, parts=("postgres",))
    stack.down(home)
    return home


@pytest.fixture
def stopped(ready_made: Path, small: Path) -> Path:
    """A home with a PostgreSQL that has run before."""
    subprocess.run(["cp", "-a", ready_made, small], check=True)  # with its owner, who may be another user
    return small


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """An empty home, for tests that need only the parts that start in a blink."""
    yield tmp_path / "home"
    stack.down(tmp_path / "home")
