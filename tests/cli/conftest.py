"""The real command in this process, against the one stack, in a directory with an app of its own."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from headrace.base.settings import Settings
from headrace.cli.main import run
from headrace.log import topics
from headrace.log.broker import Broker
from headrace.model.topic import Topic

APP = '''
"""A shop with one topic."""

from datetime import datetime

import headrace as hr


@hr.event(topic="{topic}", key="card_id", time="at", id="order_id")
class Order:
    order_id: str
    card_id: str
    amount: hr.Money
    at: datetime
    items: int = 1
    gift: bool = False
    note: str | None = None
    tags: list[str] = []


shop = hr.App("shop")
orders = shop.stream(Order, disorder="30 s")
'''


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a command left: its exit code, its data, its talk."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.out)

    @property
    def lines(self) -> list[Any]:
        return [msgspec.json.decode(line) for line in self.out.splitlines()]


Headrace = Callable[..., Said]


@pytest.fixture
def headrace(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Headrace:
    """`headrace("topics", "--json")`: runs the command as a shell would, in an empty directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEADRACE__HOME", str(settings.home))
    monkeypatch.setenv("TZ", "UTC")

    def called(*arguments: str, stdin: str = "") -> Said:
        monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
        capsys.readouterr()
        code = run(list(arguments))
        said = capsys.readouterr()
        return Said(code=code, out=said.out, err=said.err)

    return called


@pytest.fixture
def orders(headrace: Headrace, broker: Broker, topic: str, tmp_path: Path) -> str:
    """A topic of one partition that the app `shop` reads as Order."""
    module = f"shop_{topic.replace('-', '_')}"
    (tmp_path / f"{module}.py").write_text(APP.format(topic=topic))
    (tmp_path / "headrace.toml").write_text(f'[apps]\nshop = "{module}:shop"\n')
    topics.ensure(broker, Topic(name=topic, partitions=1))
    return topic


@pytest.fixture
def notes(headrace: Headrace, broker: Broker, topic: str) -> str:
    """A topic of one partition that no app knows."""
    topics.ensure(broker, Topic(name=topic, partitions=1))
    return topic


ORDER = ("order_id=o1", "card_id=c1", "amount=9.50", "at=2026-11-03T15:00Z")
