"""The stack as a use case: start what is embedded, check what is your own, say how all of it is."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import get_args

from headrace.base.duration import duration
from headrace.base.errors import BadSetting, PartFailed, UsageError
from headrace.base.settings import Settings
from headrace.log.broker import Broker
from headrace.observe.part import PartView, State
from headrace.ops import endpoints, greet
from headrace.stack import stack
from headrace.stack.answer import Answer
from headrace.stack.jars import Progress, silent

Tell = Callable[[str], None]
CONNECT = "connect"
LEAST_PATIENCE = timedelta(seconds=1)
SAYS = {"silent": "does not answer", "refused": "does not let us in"}


def up(
    settings: Settings,
    *,
    brokers: int | None = None,
    connect: bool = False,
    foreground: bool = False,
    tell: Tell = silent,
    progress: Progress | None = None,
) -> list[PartView]:
    """Starts the embedded parts that settings do not replace, and checks that those of your own answer."""
    if connect and endpoints.own(settings, "kafka"):
        raise UsageError(
            "Connect is embedded only beside the embedded Kafka",
            why=f"kafka.bootstrap names your own: {settings.text('kafka.bootstrap')}",
            fix="run Connect beside your Kafka",
        )
    parts = endpoints.embedded(settings) + ((CONNECT,) if connect else ())
    if parts:
        stack.up(
            settings.home,
            settings.cache,
            brokers=settings.number("kafka.brokers") if brokers is None else brokers,
            patience=_patience(settings),
            parts=parts,
            foreground=foreground,
            tell=tell,
            progress=progress,
        )
    found = status(settings)
    for part in found:
        if part.kind == "own" and part.state != "running":
            raise PartFailed(
                f"your own {part.name} {SAYS[part.state]} at {part.address}",
                why=part.trouble,
                fix=own_fix(part),
            )
    return found


def _patience(settings: Settings) -> timedelta:
    given = duration(settings.text("kafka.patience"))
    if given < LEAST_PATIENCE:
        raise BadSetting(
            f"kafka.patience = {settings.text('kafka.patience')!r} is too short",
            why="a broker says five times in it that it lives",
            fix="1 s or more",
        )
    return given


def down(settings: Settings, *, tell: Tell = silent) -> list[str]:
    """Stops the embedded parts; returns the names of those that ran."""
    return stack.down(settings.home, tell=tell)


def status(settings: Settings) -> list[PartView]:
    """Every part, asked in its own protocol."""
    running = stack.addresses(settings.home)
    found = [_own(settings, name) for name in endpoints.OWN if endpoints.own(settings, name)]
    replaced = {part.name for part in found}
    for part in stack.status(settings.home):
        name = "kafka" if part.name.startswith("kafka") else part.name
        if name in replaced:
            continue
        alive = part.state == "running" and running is not None
        answer = _ask(settings, name, getattr(running, name), part.address) if alive else None
        found.append(
            PartView(
                name=part.name,
                kind="embedded",
                state=answer.state if answer else _state(part.state),
                address=part.address,
                pid=part.pid,
                memory_mb=part.rss_bytes // 1_000_000 if part.pid else None,
                uptime=part.uptime,
                log=part.log if part.log.exists() else None,
                trouble=answer.why if answer else "",
            )
        )
    return found


def own_fix(part: PartView) -> str:
    """What to do about a part of your own that cannot be used."""
    setting = "the kafka.* settings" if part.name == "kafka" else endpoints.OWN[part.name]
    correct = f"correct {setting} (`headrace config` shows where each is set)"
    return correct if part.state == "refused" else f"start it, or {correct}"


def _state(name: str) -> State:
    return next(known for known in get_args(State) if known == name)


def _own(settings: Settings, name: str) -> PartView:
    url = settings.text(endpoints.OWN[name])
    address = url if name == "kafka" else greet.place(url)
    answer = _ask(settings, name, url, address)
    return PartView(name=name, kind="own", state=answer.state, address=address, trouble=answer.why)


def _ask(settings: Settings, name: str, url: str, address: str) -> Answer:
    """What a part answers. A broker of several is asked alone, at its own address."""
    if name == "kafka":
        own = endpoints.own(settings, name)
        return greet.kafka(Broker.of(settings) if own else Broker(bootstrap=address))
    if name == CONNECT:
        return Answer("running")  # `up` has asked it; its REST calls belong to the room that uses it
    return greet.database(name, url)
