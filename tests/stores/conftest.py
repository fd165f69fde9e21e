"""Servers for the tests of stores: only the one that is asked for."""

from __future__ import annotations

import pytest

from headrace.base.settings import Settings
from headrace.stack import stack as embedded


@pytest.fixture(scope="session")
def postgres_url(settings: Settings) -> str:
    return embedded.up(settings.home, settings.cache, parts=("postgres",), foreground=True).postgres


@pytest.fixture(scope="session")
def redis_url(settings: Settings) -> str:
    return embedded.up(settings.home, settings.cache, parts=("redis",), foreground=True).redis
