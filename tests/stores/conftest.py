"""Servers for the tests of stores: only the one that is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import psutil
import pytest

from headrace.base.settings import Settings
from headrace.stack import stack as embedded


@pytest.fixture(scope="session")
def postgres_url(settings: Settings) -> str:
    return embedded.up(settings.home, settings.cache, parts=("postgres",), foreground=True).postgres


@pytest.fixture(scope="session")
def redis_url(settings: Settings) -> str:
    return embedded.up(settings.home, settings.cache, parts=("redis",), foreground=True).redis


@contextmanager
def killed(settings: Settings, part: str) -> Iterator[None]:
    """Kills a server as kill -9 does; it is started again while the block runs."""
    server = server_of(settings, part)
    server.kill()
    server.wait(10)
    again = Thread(
        target=embedded.up, args=(settings.home, settings.cache), kwargs={"parts": (part,), "foreground": True}
    )
    again.start()
    try:
        yield
    finally:
        again.join()


@contextmanager
def frozen(settings: Settings, part: str) -> Iterator[None]:
    """A server and all its processes stand still while the block runs."""
    server = server_of(settings, part)
    those = [server, *server.children(recursive=True)]
    for process in those:
        process.suspend()
    try:
        yield
    finally:
        for process in those:
            process.resume()


def server_of(settings: Settings, part: str) -> psutil.Process:
    (pid,) = (found.pid for found in embedded.status(settings.home) if found.name == part)
    assert pid is not None
    return psutil.Process(pid)
